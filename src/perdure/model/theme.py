"""The colours of a repository, by which its runs are told apart at a glance."""

from __future__ import annotations

from msgspec import Struct


class RepoTheme(Struct, frozen=True, kw_only=True):
    """Four colours, each `#RRGGBB` in capitals."""

    #: The directory they belong to; the theme's id.
    root: str
    body: str
    #: What the others are drawn on, or around.
    outline: str
    accent: str
    shirt: str
    #: `fish`, `balls` or `jelly`, when the repository asks for one.
    sprite: str | None = None
    #: Whether they were made up here and stand in no file.
    generated: bool = False
