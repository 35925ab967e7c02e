"""The colours of a repository: its own, or made up from its path, always the same. Nothing is ever written."""

from __future__ import annotations

import colorsys
import re
from hashlib import blake2b
from os.path import dirname, join

import msgspec

from perdure.model.text import encode
from perdure.model.theme import RepoTheme
from perdure.ports import HostView

#: Where a repository keeps its colours, the one that is preferred first.
_FOLDERS = (".swimmers", ".throngterm")
_FILE = "colors.json"
_COLOURS = ("body", "outline", "accent", "shirt")
_SPRITES = frozenset({"fish", "balls", "jelly"})
_COLOUR = re.compile(r"#[0-9A-Fa-f]{6}")
_LARGEST, _HIGHEST = 1 << 16, 64
#: Of the circle; hues that are this far apart never come close to each other.
_GOLDEN_ANGLE = 0.38196601125010515
#: How far every colour must stand out against the outline.
CONTRAST = 4.5


def theme_of(directory: str, host: HostView) -> RepoTheme | None:
    """Return the colours of the first directory, from this one up, that has some of its own, or else of the repository.

    A file that is not what it should be counts as none, but the directory keeps its place. None outside of repositories.
    """
    repository: str | None = None
    for above in _upwards(directory):
        names = frozenset(host.names(above))
        for folder in _FOLDERS:
            if folder in names and (raw := host.read(join(above, folder, _FILE), limit=_LARGEST)) is not None:
                return read_theme(raw, above) or made_up(above)
        if repository is None and ".git" in names:
            repository = above
    return None if repository is None else made_up(repository)


def read_theme(raw: bytes, root: str) -> RepoTheme | None:
    """Return the colours in a file, None unless all four are there and are colours."""
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    document = document if isinstance(document, dict) else {}
    palette = document.get("palette")
    found = [palette.get(name) for name in _COLOURS] if isinstance(palette, dict) else []
    colours = [each.upper() for each in found if isinstance(each, str) and _COLOUR.fullmatch(each)]
    if len(colours) != len(_COLOURS):
        return None
    body, outline, accent, shirt = colours
    sprite = document.get("sprite")
    known = sprite if isinstance(sprite, str) and sprite in _SPRITES else None
    return RepoTheme(root=root, body=body, outline=outline, accent=accent, shirt=shirt, sprite=known)


def made_up(root: str) -> RepoTheme:
    """Return colours for a path, always the same ones, each of which can be read on the outline."""
    number = int.from_bytes(blake2b(encode(root), digest_size=4).digest(), "big")
    hue = number * _GOLDEN_ANGLE % 1
    outline = _hex(hue, 0.14, 0.45)
    body, accent, shirt = (
        _readable((hue + turn) % 1, saturation, outline) for turn, saturation in ((0.0, 0.6), (0.5, 0.75), (0.12, 0.5))
    )
    return RepoTheme(root=root, body=body, outline=outline, accent=accent, shirt=shirt, generated=True)


def contrast(one: str, other: str) -> float:
    """Return how far two colours stand apart, from 1 for the same to 21 for black and white."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _readable(hue: float, saturation: float, behind: str) -> str:
    for percent in range(50, 101):
        colour = _hex(hue, percent / 100, saturation)
        if contrast(colour, behind) >= CONTRAST:
            return colour
    return "#FFFFFF"


def _hex(hue: float, lightness: float, saturation: float) -> str:
    parts = (round(255 * part) for part in colorsys.hls_to_rgb(hue, lightness, saturation))
    return "#" + "".join(f"{part:02X}" for part in parts)


def _luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _upwards(directory: str) -> list[str]:
    found = [directory.rstrip("/") or "/"]
    while len(found) < _HIGHEST and dirname(found[-1]) != found[-1]:
        found.append(dirname(found[-1]))
    return found if directory.startswith("/") else []
