"""`perdure explain TARGET`: why a pane is taken for what it is; `--screen FILE` judges a recorded screen again."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from perdure.agents import Roster, adapters, agent_of, roster
from perdure.cli._setup import Setup, add_server_arguments, path_argument, with_setup
from perdure.cli.aim import aim, look_around, owner_of
from perdure.cli.missed import report
from perdure.cli.recording import read_recording, write_recording
from perdure.cli.render import print_json, printable
from perdure.errors import NotFound, UsageError
from perdure.host.processes import is_stopped
from perdure.host.users import run_as
from perdure.model.decoding import decoder_of
from perdure.model.identity import Identity
from perdure.model.masked import without_keys
from perdure.model.screen import Screen
from perdure.model.secrets import redact_argv, redact_text
from perdure.model.sighting import Seen
from perdure.model.user import User
from perdure.snapshots.explain import Explanation, Verdict, judge, judge_anybodys, recognition, rejected
from perdure.tmux.screen import read_lines

if TYPE_CHECKING:
    from perdure.model.snapshot import Capture
    from perdure.model.topology import Pane
    from perdure.ports import AgentAdapter

_HALTED = "the agent is stopped (Ctrl-Z) until it is brought back (fg), so nothing is read from the screen"
#: More lines than a terminal shows: a file may have any number.
_TALLEST = 300


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("target", nargs="?", metavar="TARGET", help="SESSION[:WINDOW[.PANE]] or a pane id")
    add_server_arguments(parser)
    parser.add_argument(
        "--record",
        metavar="DIR",
        type=path_argument,
        help="keep the screen and what is said of it, without paths and keys",
    )
    parser.add_argument("--screen", metavar="FILE", type=path_argument, help="judge this recorded screen instead")
    parser.add_argument("--title", metavar="TEXT", help="with --screen: the pane's title")
    parser.add_argument("--agent", metavar="NAME", help="with --screen: whose screen it is")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    if args.target is None and args.screen is None:
        raise UsageError("Name a pane, or a recorded screen with --screen FILE.")
    if args.target is not None and args.screen is not None:
        raise UsageError("Both a pane and --screen FILE were given; only one can be explained.")
    if args.agent == "":
        raise UsageError("--agent needs an agent's name.")
    if args.screen is not None:
        if args.record or args.socket or args.all_users:
            raise UsageError("--screen judges a file; --record, --socket and --all-users are about live panes.")
        return _judge_file(setup, args)
    if args.title is not None or args.agent is not None:
        raise UsageError("--title and --agent go with --screen FILE; a live pane has its own.")
    return _explain_pane(setup, args)


run = with_setup(_run)


def _judge_file(setup: Setup, args: argparse.Namespace) -> int:
    recorded = read_recording(args.screen)
    title = args.title if args.title is not None else recorded.title
    screen = Screen(lines=recorded.lines, title=title)
    known, name = adapters(setup.config.agents), args.agent or recorded.agent
    verdict = judge(screen, _called(name, known)) if name else judge_anybodys(screen, known)
    verdict = _without_secrets(verdict, recorded.lines, max(map(len, recorded.lines)))
    if args.json:
        print_json(verdict)
    else:
        _print_verdict(verdict)
    return 0


def _called(name: str, known: Sequence[AgentAdapter]) -> AgentAdapter:
    for adapter in known:
        if adapter.name == name:
            return adapter
    names = ", ".join(adapter.name for adapter in known)
    raise NotFound(f"There is no agent called {name!r}; there are {names}.")


def _explain_pane(setup: Setup, args: argparse.Namespace) -> int:
    there, missed = look_around(setup, args)
    aimed = aim(setup, args.target, there, missed)
    capture, pane = aimed.capture, aimed.pane
    explanation, lines = _explain(setup, capture, pane)
    path = None
    if args.record is not None and lines is not None:
        path = write_recording(
            args.record, lines, explanation.title, explanation.screen, home=setup.me.home, width=pane.width
        )
    if args.json:
        print_json({**msgspec.to_builtins(explanation), "recorded": path})
    else:
        _print(explanation)
        if path is not None:
            print(f"recorded      {printable(path)}.txt and .json")
    code = report(missed, one_socket=args.socket is not None)
    if lines is None:
        where = f"{pane.id} on {printable(capture.server.socket)}"
        print(f"perdure: The screen of {where} could not be read.", file=sys.stderr)
    return code if lines is not None else 4


def _explain(setup: Setup, capture: Capture, pane: Pane) -> tuple[Explanation, tuple[str, ...] | None]:
    """Return the explanation, and the lines of the screen, None when they could not be read."""
    known = roster(setup.config.agents)
    details = capture.details.panes[pane.id]
    owner = owner_of(setup, capture)
    lines = read_lines(capture.server.socket, pane.id, owner, timeout=setup.config.tmux.timeout_seconds)
    screen = Screen(lines=lines or (), title=details.title)
    identity = pane.identity
    found = agent_of(details.processes, known)
    is_halted = found is not None and is_stopped(found[1].pid)
    verdict = Verdict(because=("no agent is in this pane, so nothing is read from its screen",))
    if lines is None:
        verdict = Verdict(agent=identity.agent if identity else None, because=("the screen could not be read",))
    elif is_halted:
        verdict = Verdict(agent=identity.agent if identity else None, because=(_HALTED,))
    elif found is not None:
        verdict = judge(screen, found[0])
    claims = _claims(setup, capture, pane, owner) if found is not None else ()
    explanation = Explanation(
        user=capture.server.user,
        socket=capture.server.socket,
        pane_id=pane.id,
        agent=identity.agent if identity else None,
        recognition=tuple(recognition(details.processes, known)),
        conversation=identity.conversation if identity else None,
        evidence=identity.evidence.value if identity and identity.evidence else None,
        certain=identity.certain if identity else None,
        because=_redacted(details.because),
        rejected=_redacted(rejected(claims, identity, details.because)),
        resume=_resume(pane, found[0] if found is not None else _adapter(identity, known)),
        title=redact_text(details.title),
        screen=_without_secrets(verdict, screen.lines, pane.width),
        stopped=is_halted,
    )
    return explanation, lines


def _claims(setup: Setup, capture: Capture, pane: Pane, owner: User) -> Sequence[Identity]:
    """Every identity the evidence allows, found as the user whose files tell."""
    details = capture.details.panes[pane.id]
    found = agent_of(details.processes, roster(setup.config.agents))
    if found is None:
        return ()
    adapter, process = found
    seen = Seen(server=capture.server, pane=pane.id, title=details.title, process=process, tree=details.processes)
    view = setup.surroundings().view_of(owner)
    if owner.uid == setup.me.uid:
        return adapter.identify(seen, view)
    raw = run_as(owner, lambda: msgspec.json.encode(list(adapter.identify(seen, view))))
    return decoder_of(list[Identity]).decode(raw)


def _adapter(identity: Identity | None, known: Roster) -> AgentAdapter | None:
    """Return who knows an agent that does not run in the pane: it is to be started there, or kept for it."""
    return known.called({identity.agent}).get(identity.agent) if identity is not None else None


def _resume(pane: Pane, adapter: AgentAdapter | None) -> tuple[str, ...] | None:
    if adapter is None or pane.identity is None or pane.program is None:
        return None
    command = adapter.resume(pane.identity, pane.program)
    return None if command is None else tuple(redact_argv(command.argv))


def _without_secrets(verdict: Verdict, lines: Sequence[str], width: int) -> Verdict:
    """Return the verdict without keys; a line it quotes may hold the rest of one that begins in the line above."""
    because, lines = list(verdict.because), lines[-_TALLEST:]
    for line, masked in zip(lines, without_keys(lines, width), strict=True):
        if line != masked:
            because = [why.replace(line.strip(), masked.strip()) for why in because]
    return msgspec.structs.replace(verdict, because=_redacted(because))


def _redacted(reasons: Iterable[str]) -> tuple[str, ...]:
    return tuple(redact_text(why) for why in reasons)


def _print(explained: Explanation) -> None:
    print(f"pane          {explained.pane_id} of {explained.user} on {printable(explained.socket)}")
    print(f"agent         {explained.agent or 'none'}{', stopped (Ctrl-Z)' if explained.stopped else ''}")
    _print_list(explained.recognition)
    if explained.agent is not None:
        sure = "" if explained.certain else " (uncertain)"
        by = f", known by {explained.evidence}{sure}" if explained.evidence else ""
        print(f"conversation  {printable(explained.conversation or 'unknown')}{by}")
        _print_list(explained.because)
        if explained.rejected:
            print("rejected")
            _print_list(explained.rejected)
        line = shlex.join(explained.resume) if explained.resume else "by nothing"
        print(f"brought back  {printable(line)}")
    print(f"title         {printable(explained.title)}")
    _print_verdict(explained.screen)


def _print_verdict(verdict: Verdict) -> None:
    said = verdict.state or ("covered, so the state stays what it was" if verdict.frozen else "cannot tell")
    reason = f" ({verdict.reason})" if verdict.reason else ""
    rule = f" by {verdict.rule}, confidence {verdict.confidence:.2f}" if verdict.rule else ""
    whose = f"{verdict.agent}: " if verdict.agent else ""
    print(f"screen        {whose}{said}{reason}{rule}")
    _print_list(verdict.because)


def _print_list(lines: Sequence[str]) -> None:
    for line in lines:
        print(f"              - {printable(line)}")
