"""`perdure token ls`: what lets anybody in."""

from __future__ import annotations

import argparse
import os
from datetime import datetime

import msgspec
from msgspec import Struct

from perdure.api.caller import Scope
from perdure.api.vault import MAIN, Vault
from perdure.cli._setup import Setup, with_setup
from perdure.cli.render import age, print_json, print_table
from perdure.host.clock import now


class TokenRow(Struct, frozen=True, kw_only=True):
    """One token or login; never the secret itself."""

    id: str | None
    #: `token` or `session`: a program's, or a browser's.
    kind: str
    name: str
    scope: str
    user: str
    created_at: datetime | None
    expires_at: datetime | None
    #: Of one's own token: the file it lies in.
    path: str | None = None


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""


def _run(setup: Setup, args: argparse.Namespace) -> int:
    vault, at = Vault(setup.state_dir, setup.me), now()
    rows = [
        TokenRow(
            id=each.id,
            kind=each.kind,
            name=each.name,
            scope=each.scope,
            user=each.user,
            created_at=each.created_at,
            expires_at=each.expires_at,
        )
        for each in vault.grants()
        if not each.is_over(at)
    ]
    if os.path.exists(vault.main_path):
        rows.insert(0, _main(vault, setup.me.name))
    if args.json:
        print_json({"tokens": [msgspec.to_builtins(row) for row in rows]})
    elif rows:
        print_table(
            ("id", "kind", "name", "scope", "user", "made", "file"),
            [_cells(row, at) for row in rows],
            whole=("id", "name", "file"),
        )
    else:
        print("Nothing lets anybody in yet: `perdure up` makes your own token, `perdure token new` others.")
    return 0


run = with_setup(_run)


def _main(vault: Vault, user: str) -> TokenRow:
    return TokenRow(
        id=None,
        kind="token",
        name=MAIN,
        scope=Scope.WRITE,
        user=user,
        created_at=None,
        expires_at=None,
        path=vault.main_path,
    )


def _cells(row: TokenRow, at: datetime) -> list[object]:
    made = age(row.created_at, at) if row.created_at else None
    return [row.id, row.kind, row.name, row.scope, row.user, made, row.path]
