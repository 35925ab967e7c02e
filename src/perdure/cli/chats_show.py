"""`perdure chats show TARGET`: what was said in a chat, and what is known of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec import Struct

from perdure.chats.reset import policy_for
from perdure.chats.shown import Ancestor, ancestors, chat_row, last_turns, title_of, turn_row, where
from perdure.cli._setup import Setup, count_argument, with_setup
from perdure.cli.chat_lines import turn_lines
from perdure.cli.chats_setup import add_target_argument, state_of, target_of
from perdure.cli.jobs_setup import jobs_of
from perdure.cli.render import age, counted, local, print_json, printable
from perdure.host.clock import now
from perdure.model.chat import Chat, Source, Tokens
from perdure.model.secrets import redact_data

_LAST = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target_argument(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--turns", type=count_argument, default=_LAST, metavar="N", help=f"the last N turns ({_LAST} without it)"
    )
    which.add_argument("--all", action="store_true", help="everything that was said")
    parser.add_argument("--hidden", action="store_true", help="what was taken back, too")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    store = setup.readable.chats
    chat = target_of(setup, args)
    if args.all:
        turns = store.load_turns(chat.id, hidden=args.hidden).turns
    else:
        turns = last_turns(store, chat.id, args.turns, hidden=args.hidden)
    before = tuple(ancestors(store, chat))
    further = store.continuation_of(chat.id)
    jobs = tuple(_jobs(setup, chat))
    if args.json:
        print_json(
            {
                "chat": chat_row(chat),
                "lineage": before,
                "continued_in": further and further.id,
                "extra": redact_data(chat.extra),
                "jobs": jobs,
                "flush": {"flushed_at": chat.flushed_at, "failures": chat.flush_failures},
                "turns": [turn_row(turn) for turn in turns],
            }
        )
        return 0
    for line in (*_facts(chat, before, further, now()), *_job_lines(jobs, now())):
        print(printable(line))
    shown = sum(not turn.hidden for turn in turns)
    print(f"turns     {chat.turns}{f', the last {shown} below' if shown < chat.turns else ''}")
    for turn in turns:
        print()
        for line in turn_lines(turn):
            print(line)
    return 0


run = with_setup(_run)


def _facts(chat: Chat, before: tuple[Ancestor, ...], further: Chat | None, at: datetime) -> Iterator[str]:
    title = title_of(chat)
    yield f"{chat.id}  {f'{title}  ' if title else ''}{state_of(chat)}"
    yield f"where     {chat.source.platform}, {where(chat)}{_ids(chat.source)}{', shared' if chat.shared else ''}"
    yield f"key       {chat.key}"
    yield f"begun     {local(chat.opened_at)}"
    yield f"used      {local(chat.touched_at)}, {age(chat.touched_at, at)}"
    if chat.closed_at is not None:
        owed = ", and still to be handed on" if chat.is_owed else ""
        yield f"closed    {local(chat.closed_at)}, {chat.close_reason or 'nobody knows why'}{owed}"
    for each in before:
        name = f" {each.title}" if each.title else ""
        yield f"follows   {each.id}{name}, {each.kinship or 'nobody knows how'}{'' if each.kept else ', not kept any more'}"
    if further is not None:
        yield f"goes on   in {further.id}"
    yield f"tokens    {_tokens(chat.tokens)}"
    for model, tokens in chat.by_model.items():
        yield f"          {model}: {_tokens(tokens)}"
    if chat.flush_failures:
        yield f"flush     failed {counted(chat.flush_failures, 'time')}"


class _Job(Struct, frozen=True, kw_only=True):
    """A job of a chat's conversation that is running."""

    id: str
    ordered_at: datetime
    #: Whether it keeps the chat from ending by itself: one that was forgotten does not do so for ever.
    keeps_open: bool


def _jobs(setup: Setup, chat: Chat) -> Iterator[_Job]:
    if not chat.is_open:
        return
    policy = policy_for(setup.config.chats, chat.source.platform, chat.source.chat_type)
    oldest = now() - timedelta(hours=policy.job_max_age_hours)
    for job in jobs_of(setup, only_look=True).list(owner=chat.key, is_running=True):
        yield _Job(id=job.id, ordered_at=job.ordered_at, keeps_open=job.ordered_at >= oldest)


def _job_lines(jobs: tuple[_Job, ...], at: datetime) -> Iterator[str]:
    for place, job in enumerate(jobs):
        old = "" if job.keeps_open else ", too old to keep it from ending by itself"
        yield f"{'' if place else 'jobs':<10}{job.id}, since {age(job.ordered_at, at)}{old}"


def _ids(source: Source) -> str:
    ids = {
        "profile": source.profile,
        "scope": source.scope_id,
        "chat": source.chat_id,
        "thread": source.thread_id,
        "user": source.user_id_alt or source.user_id,
    }
    return "".join(f", {name} {id}" for name, id in ids.items() if id)


def _tokens(tokens: Tokens) -> str:
    return f"{tokens.total} ({tokens.input} in, {tokens.output} out)"
