"""`perdure chats export TARGET`: a chat as JSON lines, which can be imported again, or as Markdown for people."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator

from perdure.cli._setup import Setup, path_argument, with_setup
from perdure.cli.chats_setup import add_target_argument, target_of
from perdure.cli.render import counted, print_json
from perdure.errors import ChatDamaged, PerdureError, UsageError
from perdure.model.chat import Chat, Transcript
from perdure.ports import ChatStore

JSONL, MARKDOWN = "jsonl", "markdown"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target_argument(parser)
    parser.add_argument(
        "--format", choices=(JSONL, MARKDOWN), default=JSONL, help="jsonl, which loses nothing; or markdown, to be read"
    )
    parser.add_argument(
        "--output", metavar="FILE", type=path_argument, help="where to, for you alone; standard output without it"
    )
    parser.add_argument("--hidden", action="store_true", help="what was taken back, too")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    if args.json and args.output is None:
        raise UsageError("--json says what was written: it needs --output FILE.")
    store = setup.readable.chats
    id = target_of(setup, args).id
    transcript = _transcript(store, id, hidden=args.hidden)
    lines = _lines(store.get_chat(id), transcript, args.format)
    if args.output is None:
        for line in lines:
            sys.stdout.buffer.write(line)
        sys.stdout.flush()
        return _exit_code(id, transcript)
    if not os.path.isdir(os.path.dirname(os.path.realpath(args.output))):
        # A directory that is missing is mistyped: nobody would find the file where it was made.
        raise PerdureError(f"{args.output} could not be written: there is no such directory.", path=args.output)
    from perdure.compat.files import write_export

    write_export(args.output, b"".join(lines))
    if args.json:
        print_json(
            {
                "chat": id,
                "format": args.format,
                "turns": len(transcript.turns),
                "missing": transcript.missing,
                "file": args.output,
            }
        )
    else:
        print(f"wrote {args.output} ({counted(len(transcript.turns), 'turn')} of {id})")
    return _exit_code(id, transcript)


run = with_setup(_run)


def _transcript(store: ChatStore, id: str, *, hidden: bool) -> Transcript:
    """What was said; where that cannot be read back as it was written, what is left of it."""
    try:
        return store.load_turns(id, hidden=hidden)
    except ChatDamaged:
        left = store.load_turns(id, hidden=hidden, partly=True)
        if not left.missing:
            raise
        return left


def _exit_code(id: str, transcript: Transcript) -> int:
    if not transcript.missing:
        return 0
    print(
        f"perdure: This is not all that was said in chat {id}: something is missing at {counted(transcript.missing, 'position')}.",
        file=sys.stderr,
    )
    return 4


def _lines(chat: Chat, transcript: Transcript, format: str) -> Iterator[bytes]:
    if format == JSONL:
        from perdure.chats.jsonl import lines_of

        return lines_of(chat, transcript)
    from perdure.chats.markdown import markdown_of

    lines = markdown_of(chat, transcript.turns, missing=transcript.missing)
    return (f"{line}\n".encode(errors="backslashreplace") for line in lines)
