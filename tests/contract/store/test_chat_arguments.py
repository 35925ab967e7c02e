"""Every verb of a gateway's chats, with every argument of another kind: a sentence, and nothing is changed."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product
from types import MappingProxyType, NoneType
from typing import NamedTuple

import pytest

from perdure import errors
from perdure.chats.ownership import Asker
from perdure.chats.service import Chats
from perdure.model.chat import Chat, Source, Turn
from perdure.model.config import Config
from perdure.store.store import Store
from tests.builders import NOON
from tests.contract.store.chats import Clock, a_source, a_turn

ALICE = a_source("alice")
#: Something of every kind.
KINDS: tuple[object, ...] = (
    *(None, True, 1, -1, 1.0, 1.5, float("nan"), 1 << 70, -(1 << 70), "1", "text", b"text", object(), int),
    *([], ["text"], {}, ("text",), NOON, timedelta(1), NOON.replace(tzinfo=None), ALICE, Asker.OPERATOR, a_turn()),
)
#: Of which kind an argument has to be, by its name; of any other it is refused.
RIGHT_KINDS: dict[str, tuple[type, ...]] = {
    "source": (Source,),
    "asker": (Source, Asker),
    "to": (Source,),
    **dict.fromkeys(("id", "text", "query", "model"), (str,)),
    **dict.fromkeys(("platform", "user", "role", "key"), (str, NoneType)),
    **dict.fromkeys(("start", "count", "input", "output"), (int,)),
    **dict.fromkeys(("limit", "before"), (int, NoneType)),
    **dict.fromkeys(("since", "until"), (datetime, NoneType)),
    "active_within": (timedelta, NoneType),
    "turns": (Turn,),
}
#: What is only ever compared, or asked whether it is so: it is refused, or does no harm.
ANY_KIND = frozenset({"expect", "partly", "force_new", "besides"})
#: What a gateway has from here, and gives back.
OURS = frozenset({"chat", "now"})
#: What a parameter is given when another one is tried.
RIGHT = MappingProxyType(
    {
        "source": ALICE,
        "asker": ALICE,
        "to": a_source("bob"),
        "text": "Plan",
        "query": "hello",
        "model": "big",
        "start": 1,
        "turns": (a_turn("more"),),
        "now": NOON,
    }
)


class Given(NamedTuple):
    """An argument of a verb."""

    verb: str
    parameter: str

    def call(self, chats: Chats, chat: Chat, value: object) -> object:
        """Call the verb with the value, and whatever else it needs."""
        method = getattr(chats, self.verb)
        positional: list[object] = []
        named: dict[str, object] = {}
        for name, parameter in inspect.signature(method).parameters.items():
            is_meant = name == self.parameter
            if not is_meant and parameter.default is not parameter.empty:
                continue
            chosen = value if is_meant else {**RIGHT, "id": chat.id, "chat": chat}[name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional += [chosen] if is_meant else chosen  # type: ignore[arg-type]
            elif parameter.kind is parameter.KEYWORD_ONLY:
                named[name] = chosen
            else:
                positional.append(chosen)
        return method(*positional, **named)


def arguments() -> Iterator[Given]:
    for verb, method in inspect.getmembers(Chats, inspect.isfunction):
        if not verb.startswith("_"):
            names = inspect.signature(method).parameters
            yield from (Given(verb, name) for name in names if name not in OURS | {"self"})


ARGUMENTS = list(arguments())


@pytest.fixture
def chats(threaded: Store) -> Chats:
    """Chats of a gateway."""
    return Chats(threaded.chats, Config(), Clock())


# Whatever is refused is refused before any database is asked.
@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize("verb", sorted({given.verb for given in ARGUMENTS}))
def test_an_argument_of_another_kind_is_a_sentence(chats: Chats, verb: str) -> None:
    for given, value in product((given for given in ARGUMENTS if given.verb == verb), KINDS):
        chat = chats.open(ALICE)
        refused: str | None = None
        try:
            found = given.call(chats, chat, value)
        except errors.PerdureError as error:
            refused = error.message
        if refused is not None:
            assert refused.isprintable()
            assert refused.endswith(".")
        elif not is_right(given, value):
            # That it is not open is all that can be said of what is no chat.
            assert (given.verb, found) == ("touch", False), (given, value)


def is_right(given: Given, value: object) -> bool:
    """Whether a value is of the kind an argument has to be of."""
    if given.parameter in ANY_KIND or (given, value) in (
        (Given("branch", "asker"), None),
        (Given("compress", "turns"), []),
    ):
        return True
    kinds = RIGHT_KINDS[given.parameter]
    if (given.verb, value) == ("search", None):
        kinds = tuple(kind for kind in kinds if given.parameter != "limit" or kind is not NoneType)
    return isinstance(value, kinds) and not isinstance(value, bool)


def test_nobody_who_is_no_source_sees_what_others_said(chats: Chats) -> None:
    chats.append(chats.open(ALICE).id, a_turn("tiles"))
    assert chats.search(Asker.OPERATOR, "tiles")
    for nobody in (None, "operator", {"platform": "telegram"}, True):
        with pytest.raises(errors.UsageError, match="Source"):
            chats.search(nobody, "tiles")  # type: ignore[arg-type]
        with pytest.raises(errors.UsageError, match="Source"):
            chats.list(nobody)  # type: ignore[arg-type]
