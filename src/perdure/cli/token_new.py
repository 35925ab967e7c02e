"""`perdure token new`: make a token for a program."""

from __future__ import annotations

import argparse

from perdure.api import tokens
from perdure.api.caller import Scope
from perdure.api.tokens import Kind
from perdure.api.vault import Vault, fresh_secret
from perdure.cli._setup import Setup, with_setup
from perdure.cli.render import print_json
from perdure.errors import NotFound, Refused
from perdure.host.clock import now
from perdure.host.users import user_by_name
from perdure.model.user import User


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--name", metavar="NAME", default="", help="what it is for; made up without")
    parser.add_argument("--read-only", action="store_true", help="good for looking alone")
    parser.add_argument("--user", metavar="NAME", help="for this user, who sees what is theirs (root)")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    vault, secret = Vault(setup.state_dir, setup.me), fresh_secret()
    user = setup.me if args.user is None else _somebody(setup, args.user)
    made = tokens.grant(
        secret,
        kind=Kind.TOKEN,
        name=args.name or f"token-{tokens.digest_of_secret(secret)[-8:]}",
        scope=Scope.READ if args.read_only else Scope.WRITE,
        uid=user.uid,
        user=user.name,
        now=now(),
    )
    vault.add(made, now())
    if args.json:
        print_json({"id": made.id, "name": made.name, "scope": made.scope, "user": made.user, "token": secret})
    else:
        # Nothing else, so that a script can take it; only its digest is kept.
        print(secret)
    return 0


run = with_setup(_run)


def _somebody(setup: Setup, name: str) -> User:
    user = user_by_name(name)
    if user is None:
        raise NotFound(f"There is no user {name!r}.")
    if user.uid != setup.me.uid and setup.me.uid != 0:
        raise Refused("Only root may make a token for somebody else.")
    return user
