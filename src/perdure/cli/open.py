"""`perdure open`: open the dashboard, logged in."""

from __future__ import annotations

import argparse
import os
import sys
from urllib.parse import urlsplit

from perdure.cli._setup import Setup, with_setup
from perdure.cli.ask import PATIENCE
from perdure.cli.render import print_json
from perdure.daemon.call import call
from perdure.daemon.protocol import AskLogin
from perdure.host.browser import open_in_browser, opener
from perdure.model.decoding import converted


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--print", action="store_true", help="only print the address, which logs in once")
    parser.add_argument("--user", metavar="NAME", help="as this user, who sees what is theirs (root)")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    answer = call(setup.state_dir, AskLogin(user=args.user), PATIENCE)
    url = converted(answer, dict[str, str])["url"]
    if args.json:
        print_json({"url": url})
        return 0
    program = None if args.print else opener(os.environ)
    if program is not None and open_in_browser(program, url):
        parts = urlsplit(url)
        print(f"Opened {parts.scheme}://{parts.netloc} in your browser.")
        return 0
    print(url, flush=True)
    if not args.print:
        port = urlsplit(url).port
        print(
            "perdure: No browser can be opened here. The address logs in once, within an hour; from another machine, "
            f"after `ssh -L {port}:127.0.0.1:{port} …`.",
            file=sys.stderr,
        )
    return 0


run = with_setup(_run)
