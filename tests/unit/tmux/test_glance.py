from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.model.text import decode
from perdure.tmux.glance import Glance, Outline, read_glance, read_outline
from perdure.tmux.parse import Garbled

MARK = "0123456789abcdef"
WHO = b"14401 1794745791 3.3a"

#: Anything a name or a title may hold; what looks like our own records and marks too.
texts = st.one_of(
    st.binary(max_size=30).filter(lambda raw: b"\0" not in raw),
    st.sampled_from(
        [b"G%1 0 0|", b"\n3:abc", b"a\tb|c:d", b"'\"\\;#{pid}", b"\xff\xfe", b"\nP%1 @1|0:\n", "naïve 🙂".encode()]
    ),
)
#: Lines of a screen; they cannot know the mark of a question that was asked on standard input.
lines = st.lists(st.binary(max_size=20).filter(lambda raw: b"\n" not in raw), min_size=1, max_size=5)


def sized(*values: bytes) -> bytes:
    return b"".join(b"%d:%s" % (len(value), value) for value in values)


def glance_at(
    panes: Mapping[str, tuple[tuple[bytes, bytes, bytes], list[bytes] | None]], clients: bytes = b""
) -> bytes:
    """What tmux prints for these panes: their names and the lines that were asked for."""
    mark = MARK.encode()
    parts = [mark + b" begin " + WHO + b"\n", clients]
    for id, (names, shown) in panes.items():
        parts.append(mark + b" G%s 2 1 77 0   0 1 80 24 0|" % id.encode() + sized(*names) + b"\n")
        parts.extend(line + b"\n" for line in shown or ())
    return b"".join([*parts, mark + b" end " + WHO + b"\n"])


seen = st.dictionaries(
    st.integers(0, 50).map(lambda number: f"%{number}"),
    st.tuples(st.tuples(texts, texts, texts), st.none() | lines),
    max_size=4,
)


def wanted(panes: Mapping[str, tuple[object, list[bytes] | None]]) -> dict[str, bool]:
    return {id: shown is not None for id, (_, shown) in panes.items()}


@given(seen)
def test_every_name_and_every_line_comes_back(
    panes: dict[str, tuple[tuple[bytes, bytes, bytes], list[bytes] | None]],
) -> None:
    found = read_glance(glance_at(panes), MARK, wanted(panes)).panes
    assert found.keys() == panes.keys()
    for id, (names, shown) in panes.items():
        pane = found[id]
        assert (pane.session, pane.window_name, pane.title) == tuple(map(decode, names))
        assert pane.lines == (None if shown is None else tuple(map(decode, shown)))
        assert (pane.window, pane.index, pane.pid, pane.width, pane.height) == (2, 1, 77, 80, 24)
        assert (pane.exit_status, pane.exit_signal) == (None, None)


@given(seen, st.data())
def test_an_answer_that_is_cut_short_is_none(
    panes: dict[str, tuple[tuple[bytes, bytes, bytes], list[bytes] | None]], data: st.DataObject
) -> None:
    answer = glance_at(panes)
    cut = answer[: data.draw(st.integers(0, len(answer) - 1))]
    with pytest.raises(Garbled):
        read_glance(cut, MARK, wanted(panes))


@given(st.binary(max_size=200))
def test_no_answer_but_the_one_that_was_asked_for_is_taken(answer: bytes) -> None:
    for ours in (answer, MARK.encode() + b" begin " + WHO + b"\n" + answer):
        with pytest.raises(Garbled):
            read_glance(ours, MARK, {"%1": True})
        with pytest.raises(Garbled):
            read_outline(ours, MARK)


def gone() -> bytes:
    return f"{MARK} G           |0:0:0:\n".encode()


def test_a_pane_that_is_gone_is_absent_and_costs_only_itself() -> None:
    here = glance_at({"%1": ((b"s", b"w", b"t"), [b"a", b"", b"b"])})
    begin, pane, end = here.partition(f"{MARK} G".encode())
    for answer in (begin + gone() + pane + end, here.replace(f"{MARK} end".encode(), gone() + f"{MARK} end".encode())):
        asked = {"%9": True, "%1": True} if answer.startswith(begin + gone()) else {"%1": True, "%9": True}
        found = read_glance(answer, MARK, asked).panes
        assert found.keys() == {"%1"}
        assert found["%1"].lines == ("a", "", "b")


def test_another_pane_or_more_or_fewer_than_asked_for_is_no_answer() -> None:
    answer = glance_at({"%1": ((b"s", b"w", b"t"), None)})
    for asked in ({"%2": False}, {}, {"%1": False, "%2": False}):
        with pytest.raises(Garbled):
            read_glance(answer, MARK, asked)


def test_lines_nobody_asked_for_are_no_answer() -> None:
    with pytest.raises(Garbled):
        read_glance(glance_at({"%1": ((b"s", b"w", b"t"), [b"a"])}), MARK, {"%1": False})


def test_another_server_in_the_end_is_no_answer() -> None:
    answer = glance_at({}).replace(b" end 14401", b" end 14402")
    with pytest.raises(Garbled):
        read_glance(answer, MARK, {})


@pytest.mark.parametrize(
    ("clients", "visible", "activity"),
    [
        (b"", False, None),
        (b"C0 1794745800 %1 attached,UTF-8|\n", True, 1794745800),
        (b"C 1794745800 %1 attached|\n", True, 1794745800),
        (b"C0 1794745800 %1 attached|\nC0 1794745900 %1 attached|\nC0 1794745850 %1 attached|\n", True, 1794745900),
        (b"C0 1794745800 %2 attached|\n", False, None),
        (b"C1 1794745800 %1 attached,control-mode|\n", False, None),
        (b"C0 1794745800 %1 attached,suspended|\n", False, None),
    ],
)
def test_it_is_seen_by_people_who_have_it_before_them(clients: bytes, visible: bool, activity: int | None) -> None:
    answer = glance_at({"%1": ((b"s", b"w", b"t"), None)}, clients)
    pane = read_glance(answer, MARK, {"%1": False}).panes["%1"]
    at = pane.client_activity_at
    assert (pane.visible, None if at is None else int(at.timestamp())) == (visible, activity)


def outline_of(
    title: bytes = b"title", session: bytes = b"s", window: bytes = b"w", pane: bytes = b"%1 @1 0 1 0 77 0"
) -> bytes:
    mark = MARK.encode()
    return b"".join(
        [
            mark + b" begin " + WHO + b"\n",
            b"S$1 0,1|" + sized(session, b"") + b"\n",
            b"W$1 @1 0 0 b25d,80x24,0,0,0|" + sized(window) + b"\n",
            b"P" + pane + b"|" + sized(title) + b"\n",
            mark + b" end " + WHO + b"\n",
        ]
    )


@given(texts, texts, texts)
def test_an_outline_keeps_titles_and_does_not_count_them(title: bytes, session: bytes, window: bytes) -> None:
    outline = read_outline(outline_of(title, session, window), MARK)
    assert outline.titles == {"%1": decode(title)}
    assert outline.digest == read_outline(outline_of(b"another", session, window), MARK).digest


@given(texts, texts)
def test_names_and_places_count(one: bytes, other: bytes) -> None:
    def digest(**parts: bytes) -> str:
        return read_outline(outline_of(**parts), MARK).digest

    for part in ("session", "window"):
        assert (digest(**{part: one}) == digest(**{part: other})) == (one == other)
    assert len({digest(pane=b"%%1 @1 %d 1 0 77 0" % number) for number in range(3)}) == 3
    assert len({digest(pane=b"%%1 @1 0 1 0 %d 0" % number) for number in range(3)}) == 3
    assert digest(pane=b"%1 @1 0 1 0 77 1") != digest()


def test_an_outline_in_which_something_belongs_to_nothing_is_no_answer() -> None:
    for lost in (b"S$1", b"W$1 @1", b"P%1 @1"):
        with pytest.raises(Garbled):
            read_outline(outline_of().replace(lost, lost[:-1] + b"2"), MARK)


@given(st.data())
def test_an_outline_that_is_cut_short_is_none(data: st.DataObject) -> None:
    answer = outline_of()
    with pytest.raises(Garbled):
        read_outline(answer[: data.draw(st.integers(0, len(answer) - 1))], MARK)


def test_what_is_read_can_be_compared() -> None:
    panes = {"%1": ((b"s", b"w", b"t"), None)}
    first, second = (read_glance(glance_at(panes), MARK, wanted(panes)) for _ in range(2))
    assert isinstance(first, Glance)
    assert first == second
    assert isinstance(read_outline(outline_of(), MARK), Outline)
