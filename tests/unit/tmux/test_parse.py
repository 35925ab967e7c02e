from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.model.topology import Details, Topology
from perdure.tmux.assemble import assemble
from perdure.tmux.formats import PANE, PANE_LOCATED
from perdure.tmux.parse import Garbled, Survey, read_options, read_revisit, read_session, read_survey, unescape
from tests.unit.tmux.answers import MARK, answer

RECORDED = answer()
REVISITED = (
    f"{MARK} begin 300 1794745791 3.3a\n{MARK} $0\nstatus off\n{MARK} @0\n{MARK} %0\n@me x\n"
    f"{MARK} scroll %0\n$ make\nok\n\n{MARK} scroll %1\n{MARK} end 300 1794745791 3.3a\n"
).encode()


def read(raw: bytes) -> tuple[Topology, Details]:
    survey = read_survey(raw, MARK, pane=PANE)
    return assemble(survey, survey.settings)


def survey_of(raw: bytes) -> Survey:
    return read_survey(raw, MARK, pane=PANE)


def test_the_recorded_answer_is_read_exactly() -> None:
    topology, details = read(RECORDED)
    assert (topology.process.pid, topology.process.version) == (14401, "3.3a")
    assert [(each.id, each.name, each.group) for each in topology.sessions] == [
        ("$0", "pipe|sess", "pipe|sess"),
        ("$1", 'naïve "q"', ""),
        ("$2", "other", "pipe|sess"),
    ]
    assert [(each.session, each.window, each.index) for each in topology.links] == [
        ("$0", "@0", 0),
        ("$1", "@1", 1),
        ("$2", "@0", 0),
    ]
    assert [(each.id, each.name) for each in topology.windows] == [("@0", "tab\\t %d"), ("@1", "exit[dead]")]
    dead = topology.panes[2]
    assert (dead.id, dead.dead, dead.exit_status, dead.exit_signal, dead.last) == ("%3", True, 7, None, False)
    assert topology.panes[0].title == "it's | 5:x"
    assert topology.panes[0].start_path == "/tmp/pd-rec/two  spaces"
    assert details.panes["%0"].title == "it's | 5:x"
    assert details.window_flags == {"@0": "*", "@1": "*"}


def test_the_recorded_settings_are_read_exactly() -> None:
    topology, _ = read(RECORDED)
    session = topology.sessions[0]
    assert session.options == {"@note": 'a "b" $c \\d', "default-size": "80x24", "status": "off"}
    assert session.environment == {"GREETING": 'two\nlines "q" $x `y` \\z'}
    assert session.hidden == ("API_KEY",)
    assert "DISPLAY" in session.removed
    assert "hunter2" not in repr(topology)
    assert topology.windows[0].options == {"automatic-rename": "off"}
    assert topology.panes[0].options == {"@me": "x\ty"}
    assert topology.panes[1].options == {}


def test_an_answer_cut_short_anywhere_is_no_answer() -> None:
    for length in range(len(RECORDED)):
        with pytest.raises(Garbled):
            read(RECORDED[:length])


def test_a_second_answer_cut_short_anywhere_is_no_answer() -> None:
    for length in range(len(REVISITED)):
        with pytest.raises(Garbled):
            read_revisit(REVISITED[:length], MARK)


def mutated(recorded: bytes) -> st.SearchStrategy[bytes]:
    """A few bytes replaced, inserted or removed, anywhere."""
    piece = st.one_of(
        st.binary(max_size=4), st.sampled_from([b"|", b" ", b"\n", b":", b"9" * 30, b"-1", MARK.encode()])
    )
    change = st.tuples(st.integers(0, len(recorded)), st.integers(0, 6), piece)

    def apply(changes: list[tuple[int, int, bytes]]) -> bytes:
        raw = recorded
        for at, removed, put in changes:
            raw = raw[:at] + put + raw[at + removed :]
        return raw

    return st.lists(change, min_size=1, max_size=4).map(apply)


def only_garbled(work: Callable[[bytes], object], raw: bytes) -> None:
    try:
        work(raw)
    except Garbled:
        pass


@given(mutated(RECORDED))
def test_a_garbled_answer_is_garbled_and_nothing_else(raw: bytes) -> None:
    only_garbled(read, raw)


@given(mutated(REVISITED))
def test_a_garbled_second_answer_is_garbled_and_nothing_else(raw: bytes) -> None:
    only_garbled(lambda each: read_revisit(each, MARK), raw)


@given(st.binary())
def test_noise_is_garbled(noise: bytes) -> None:
    for raw in (noise, f"{MARK} begin 1 1 3.4\n".encode() + noise):
        only_garbled(read, raw)
        only_garbled(lambda each: read_revisit(each, MARK), raw)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"S$1 1794745791 0", b"S$1 never 0"),
        (b"S$1 1794745791 0", b"S$1 99999999999999999999 0"),
        (b"S$1 1794745791 0", b"S$1 1794745791 x"),
        (b"S$1 ", b"S$ "),
        (b"W$1 @1 1 ", b"W$1 @1 one "),
        (b" 100 30 6b90", b" 100 thirty 6b90"),
        (b"P@1 %1 0 14409", b"P@1 %1 0 none"),
        (b"P@1 %1 0 14409", b"P@1 % 0 14409"),
        (b"end 14401", b"end 14402"),
        (b"begin 14401 1794745791 3.3a", b"begin 14401 1794745791 3.3\xe9"),
        (b"begin 14401 1794745791", b"begin 14401 99999999999999999999"),
        (b"begin 14401 1794745791", b"begin " + b"1" * 5000 + b" 1794745791"),
        (b"P@1 %3 1", b"P@7 %3 1"),
        (b"W$1 @1 1", b"W$7 @1 1"),
    ],
)
def test_each_way_not_to_fit(before: bytes, after: bytes) -> None:
    assert before in RECORDED
    with pytest.raises(Garbled):
        read(RECORDED.replace(before, after))


def test_an_answer_to_another_question_is_garbled() -> None:
    with pytest.raises(Garbled):
        read_survey(RECORDED, "fedcba9876543210", pane=PANE)
    with pytest.raises(Garbled):
        read_survey(RECORDED, MARK, pane=PANE_LOCATED)


def test_a_pane_that_moved_up_meanwhile_does_not_lend_its_options_to_the_one_that_ended() -> None:
    """The options are printed a moment after the lists, and an index may be another pane's by then."""
    survey = survey_of(RECORDED.replace(b" @0.0.14404\n", b" @0.0.99999\n"))
    assert "%0" not in survey.settings
    assert "%1" in survey.settings


def test_without_options_there_are_no_settings() -> None:
    survey = survey_of(answer(settings=""))
    assert not survey.settings
    assert len(survey.panes) == 4


def test_a_second_answer_is_taken_apart_by_id() -> None:
    process, settings, scrollback = read_revisit(REVISITED, MARK)
    assert process.pid == 300
    assert settings == {"$0": b"status off\n", "@0": b"", "%0": b"@me x\n"}
    assert scrollback == {"%0": b"$ make\nok\n\n", "%1": b""}


def test_a_second_answer_by_another_server_is_garbled() -> None:
    with pytest.raises(Garbled, match="another server"):
        read_revisit(REVISITED.replace(b"end 300", b"end 301"), MARK)


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        (b"status off", "status", "off"),
        (b"@x ''", "@x", ""),
        (b'@x "a b"', "@x", "a b"),
        (b"@x 'say \"a\"'", "@x", 'say "a"'),
        (b"@x \\~", "@x", "~"),
        (b'@x "\\$HOME \\"q\\" \\\\ \\t\\n\\r\\033"', "@x", '$HOME "q" \\ \t\n\r\x1b'),
        (b"@x caf\\351", "@x", "caf\uefe9"),
        (b"update-environment", "update-environment", ""),
        (b"update-environment[3] DISPLAY", "update-environment[3]", "DISPLAY"),
        (b"@with space value", "@with space", "value"),
        (b'@with space "two words"', "@with space", "two words"),
        (b"@with space ''", "@with space", ""),
    ],
)
def test_an_option_line(line: bytes, name: str, value: str) -> None:
    assert read_options(line + b"\n") == {name: value}


@given(st.binary())
def test_unescaping_never_fails(value: bytes) -> None:
    unescape(value)


@given(st.binary())
def test_reading_settings_never_fails(lines: bytes) -> None:
    read_options(lines)
    read_session(lines)


def test_options_are_told_from_variables() -> None:
    options, environment = read_session(
        b'@x \'y="\'\nstatus off\nA="; export B;\n"; export A;\nunset C;\nd\ne="1"; export d\ne;\n'
    )
    assert options == {"@x": 'y="', "status": "off"}
    assert environment.values == {"A": "; export B;\n", "d\ne": "1"}
    assert environment.removed == ("C",)


def test_a_variable_is_hidden_by_name_or_by_value() -> None:
    key = b"ghp_" + b"a1B2" * 9
    _, environment = read_session(b'A="%s"; export A;\nGH_TOKEN="x"; export GH_TOKEN;\nPWD="/x"; export PWD;\n' % key)
    assert environment.values == {"PWD": "/x"}
    assert environment.hidden == ("A", "GH_TOKEN")
