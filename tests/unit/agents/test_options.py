from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents._options import Argument, Grammar

GRAMMAR = Grammar(
    """
    -r, --resume [value]
    -c, --continue
    --model <model>
    -n, --name <name>
    --addDir, --add-dir <directories...>
    --allow [<tools>...]
    """
)


def read(line: str) -> list[tuple[str | None, ...]]:
    return [(argument.name, *argument.values) for argument in GRAMMAR.parse(line.split())]


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("--resume ID", [("--resume", "ID")]),
        ("--resume=ID", [("--resume", "ID")]),
        ("-r ID", [("--resume", "ID")]),
        ("-rID", [("--resume", "ID")]),
        ("-cr ID", [("--continue",), ("--resume", "ID")]),
        ("-crID", [("--continue",), ("--resume", "ID")]),
        ("--resume --continue", [("--resume",), ("--continue",)]),
        ("--model --continue", [("--model", "--continue")]),
        ("--addDir a b --model m", [("--add-dir", "a", "b"), ("--model", "m")]),
        ("--add-dir=a b", [("--add-dir", "a"), (None, "b")]),
        ("--allow a b --model m", [("--allow", "a", "b"), ("--model", "m")]),
        ("--allow --model m", [("--allow",), ("--model", "m")]),
        ("--allow=a b", [("--allow", "a"), (None, "b")]),
        ("-n name prompt", [("--name", "name"), (None, "prompt")]),
        ("-- --model m", [(None, "--model"), (None, "m")]),
        ("--unknown word", [("--unknown",), (None, "word")]),
        ("--continue=yes", [("--continue",)]),
        ("-", [(None, "-")]),
    ],
)
def test_words_are_read_as_the_program_reads_them(line: str, arguments: list[tuple[str | None, ...]]) -> None:
    assert read(line) == arguments


def test_an_option_without_its_value_is_marked() -> None:
    assert list(GRAMMAR.parse(["--model"])) == [Argument(name="--model", words=("--model",), complete=False)]


WORDS = st.lists(st.sampled_from(["--model", "--add-dir", "-r", "-c", "-cr", "--", "-", "", "x", "--q=1"]) | st.text())


@given(WORDS)
def test_any_words_give_some_answer_and_none_is_lost(words: list[str]) -> None:
    before_operands = words[: words.index("--")] if "--" in words else words
    said = [word for argument in GRAMMAR.parse(before_operands) for word in argument.words]
    # Letters run together are the one thing that is taken apart.
    assert "".join(said).replace("-", "") == "".join(before_operands).replace("-", "")
    list(GRAMMAR.parse(words))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--chat-h", "f"], ("--chat-history-file", ("f",))),
        (["--chat-h=f"], ("--chat-history-file", ("f",))),
        (["--res"], ("--restore", ())),
        (["--re"], ("--re", ())),
        (["--chat"], ("--chat", ())),
    ],
)
def test_a_beginning_stands_for_an_option_where_the_program_has_it_so(
    words: list[str], said: tuple[str, tuple[str, ...]]
) -> None:
    declared = "--chat-history-file <file>\n--chat-mode <mode>\n--restore\n--read <file>"
    (argument,) = Grammar(declared, abbreviated=True).parse(words)
    assert (argument.name, argument.values) == said
    plain = next(iter(Grammar(declared).parse(words)))
    assert not plain.known
    assert argument.known == (said[0] not in words)
