"""What an agent that waits for an answer shows: the words it asks with, and the keys that answer. Pure, and for every agent alike.

The words are what an answer is bound to: it is only given while the screen still shows them. So they hold all that stands
before the choices, and nothing that moves by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

#: How many lines that are not empty belong to a question, above its choices.
_ABOVE = 16
#: How far from the bottom choices may end: what is further up was said, and is not asked.
_NEAR = 10
#: What stands around a line: frames, bars at the side, a scroll bar.
_FRAME = " \t\u00a0│┃║╎▏▕|█▌▍▐▄▀"
#: A line that is only drawn.
_DRAWN = re.compile(r"[\s─━═╌┄╭╮╰╯┌┐└┘├┤│┃╔╗╚╝║·.]*")
#: Spinners, and the seconds something takes: they change while nothing does.
_SPINNER = re.compile(r"[\u2800-\u28ff✢✳✶✻✽]")
_SECONDS = re.compile(r"\(\s*[0-9.]+\s*s\)")
#: `> 1. Yes`: what marks the one that is chosen, the number, the words.
_NUMBERED = re.compile(r"(?:[\u276f\u203a>●○◉◯▸→*]\s*)?(?P<key>[1-9])[.)]\s+(?P<label>\S.*)")
#: `● Allow`, `○ Deny` below each other: the one that is chosen, and those one gets to with the arrows.
_LISTED = re.compile(r"(?P<mark>[●○◉◯])\s+(?P<label>\S.*)")
#: `[y] Approve   [n] Deny`; behind a sign that something is typed there, it is also sent.
_BRACKETED = re.compile(r"\[(?P<key>[A-Za-z0-9])\]\s+(?P<label>[^\[\]▸>:]+)")
_IS_TYPED = re.compile(r".*[▸>:]\s*")
#: `(Y)es/(N)o/(D)on't ask again [Yes]:`, which is typed, and sent.
_LETTERED = re.compile(r"\((?P<key>[A-Z])\)(?P<label>[^/\[\]()]+)")
#: `(y/n)`, `[y/N]`.
_YES_OR_NO = re.compile(r"[(\[](?:y|yes)/(?:n|no)[)\]]", re.IGNORECASE)


class Choice(Struct, frozen=True, kw_only=True):
    """One answer: what it is called by, what it says, and the keys that give it."""

    key: str
    label: str
    keys: tuple[str, ...]


class Prompt(Struct, frozen=True, kw_only=True):
    """What is asked, as it is shown, and the answers that can be told from it; none where that is not clear."""

    text: str
    choices: tuple[Choice, ...] = ()

    def keys_for(self, choice: str) -> tuple[str, ...]:
        """Return the keys that give an answer: one of the choices, or else a key by its name."""
        return next((each.keys for each in self.choices if each.key == choice), (choice,))


def prompt_on(lines: Sequence[str]) -> Prompt:
    """Return what a screen asks, for one that is known to ask something."""
    shown = [text for line in lines if (text := _bare(line))]
    first, last, choices = _choices(shown)
    block = shown[max(0, first - _ABOVE) : last]
    return Prompt(text="\n".join(line for line in block if not _SPINNER.search(line)), choices=choices)


def is_same(one: str, other: str) -> bool:
    """Return whether two texts of a prompt are the same, however they are spaced and broken into lines."""
    return "".join(one.split()) == "".join(other.split())


def _bare(line: str) -> str:
    """A line without what is drawn around it; nothing when it is only drawn."""
    text = line.strip(_FRAME)
    return "" if _DRAWN.fullmatch(text) else _SECONDS.sub("", text).rstrip()


def _choices(shown: Sequence[str]) -> tuple[int, int, tuple[Choice, ...]]:
    """Where the choices begin and end, the lowest that are shown, and what they are."""
    for found in (_numbered(shown), _listed(shown), _in_a_line(shown)):
        if found is not None and found[1] >= len(shown) - _NEAR:
            return found
    return len(shown), len(shown), ()


def _numbered(shown: Sequence[str]) -> tuple[int, int, tuple[Choice, ...]] | None:
    marks = [(row, match) for row, line in enumerate(shown) if (match := _NUMBERED.fullmatch(line))]
    ones = [place for place, (_, match) in enumerate(marks) if match["key"] == "1"]
    if not ones:
        return None
    chosen = []
    for number, (row, match) in enumerate(marks[ones[-1] :], start=1):
        if match["key"] != str(number):
            break
        chosen.append((row, Choice(key=match["key"], label=match["label"], keys=(match["key"],))))
    if len(chosen) < 2:
        return None
    return chosen[0][0], chosen[-1][0] + 1, tuple(choice for _, choice in chosen)


def _listed(shown: Sequence[str]) -> tuple[int, int, tuple[Choice, ...]] | None:
    marks = [(row, match) for row, line in enumerate(shown) if (match := _LISTED.fullmatch(line))]
    group: list[tuple[int, re.Match[str]]] = []
    for row, match in reversed(marks):
        if group and group[0][0] != row + 1:
            break
        group.insert(0, (row, match))
    chosen = [place for place, (_, match) in enumerate(group) if match["mark"] in "●◉"]
    if len(group) < 2 or len(chosen) != 1:
        return None
    choices = []
    for place, (_, match) in enumerate(group):
        moves = place - chosen[0]
        keys = ("Down",) * moves if moves > 0 else ("Up",) * -moves
        choices.append(Choice(key=str(place + 1), label=match["label"], keys=(*keys, "Enter")))
    return group[0][0], group[-1][0] + 1, tuple(choices)


def _in_a_line(shown: Sequence[str]) -> tuple[int, int, tuple[Choice, ...]] | None:
    for row in range(len(shown) - 1, max(-1, len(shown) - 1 - _ABOVE), -1):
        # What was broken at the edge of a narrow pane goes on in the next line.
        line = " ".join(shown[row : row + 2])
        sent = ("Enter",) if _IS_TYPED.fullmatch(shown[row]) else ()
        bracketed = [
            (each["key"], each["label"].strip(), (each["key"], *sent)) for each in _BRACKETED.finditer(shown[row])
        ]
        lettered = [
            (each["key"].lower(), f"{each['key']}{each['label'].strip()}", (each["key"].lower(), "Enter"))
            for each in _LETTERED.finditer(line)
            if _LETTERED.search(shown[row])
        ]
        found = bracketed if len(bracketed) > 1 else lettered if len(lettered) > 1 else []
        if not found and _YES_OR_NO.search(shown[row]):
            found = [("y", "Yes", ("y", "Enter")), ("n", "No", ("n", "Enter"))]
        if found:
            choices = tuple(Choice(key=key, label=label, keys=keys) for key, label, keys in found)
            return row, row + 1, choices
    return None
