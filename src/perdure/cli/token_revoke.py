"""`perdure token revoke`: make a token or a browser's login worth nothing."""

from __future__ import annotations

import argparse

from perdure.api.vault import MAIN, Vault
from perdure.cli._setup import Setup, with_setup
from perdure.cli.render import print_json, printable


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("token", metavar="TOKEN", help=f"its id or name; {MAIN} is replaced by another")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    vault = Vault(setup.state_dir, setup.me)
    if args.token == MAIN:
        vault.renew_main()
        facts, said = {"id": None, "name": MAIN}, f"Your own token is another now: {vault.main_path}"
    else:
        gone = vault.revoke(args.token)
        facts, said = {"id": gone.id, "name": gone.name}, f"{gone.name} ({gone.id}) lets nobody in any more."
    if args.json:
        print_json({"revoked": facts})
    else:
        print(printable(said))
    return 0


run = with_setup(_run)
