from __future__ import annotations

import subprocess

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.compat.tmux_persist import from_tsv, to_tsv
from perdure.errors import ImportFailed
from perdure.model.identity import Evidence, Identity
from perdure.model.text import decode, encode
from tests.unit.compat.topologies import (
    OTHER_UUID,
    SERVER,
    UUID,
    WHEN,
    a_link,
    a_pane,
    a_session,
    a_snapshot,
    a_topology,
    as_snapshot,
    single,
)


def in_conversation(uuid: str = UUID, *, home: str | None = None) -> Identity:
    return Identity(agent="claude", conversation=uuid, evidence=Evidence.REGISTRY, certain=True, home=home)


def test_each_session_is_a_line_by_name_with_directory_and_conversation() -> None:
    snapshot = a_snapshot(
        a_topology(
            [a_session(0, "web"), a_session(1, "api")],
            {"$0": [a_link(0, 0)], "$1": [a_link(1, 1)]},
            [a_pane(0, cwd="/srv/web"), a_pane(1, window="@1", cwd="/srv/api", identity=in_conversation())],
        )
    )
    assert to_tsv(snapshot) == (f"api\t/srv/api\t{UUID}\nweb\t/srv/web\t\n", ())


def test_the_first_pane_with_a_conversation_speaks_for_its_session() -> None:
    panes = [
        a_pane(0, index=0, cwd="/shell"),
        a_pane(1, index=1, cwd="/guessed", identity=Identity(agent="claude", conversation=OTHER_UUID)),
        a_pane(2, index=2, cwd="/here", identity=in_conversation(home="/begun")),
    ]
    snapshot = a_snapshot(a_topology([a_session(0, "work")], {"$0": [a_link(0, 0)]}, panes))
    assert to_tsv(snapshot) == (f"work\t/begun\t{UUID}\n", ())


@pytest.mark.parametrize(
    "identity",
    [
        Identity(agent="claude", conversation=UUID, evidence=Evidence.GUESS),
        Identity(agent="codex", conversation=UUID, certain=True),
        Identity(agent="claude", conversation="not a uuid; rm -rf", certain=True),
        msgspec.structs.replace(in_conversation(), prompted=False),
        Identity(agent="claude"),
    ],
)
def test_what_the_script_could_not_resume_is_a_shell(identity: Identity) -> None:
    assert to_tsv(single(a_pane(0, cwd="/w", identity=identity))) == ("work\t/w\t\n", ())


def test_a_conversation_shown_in_two_sessions_is_resumed_once() -> None:
    topology = a_topology(
        [a_session(0, "main", group="main"), a_session(1, "side", group="main")],
        {"$0": [a_link(0, 0)], "$1": [a_link(1, 0)]},
        [a_pane(0, cwd="/w", identity=in_conversation())],
    )
    text, warnings = to_tsv(a_snapshot(topology))
    assert text == f"main\t/w\t{UUID}\nside\t/w\t\n"
    assert len(warnings) == 1
    assert "'side'" in warnings[0]


@pytest.mark.parametrize(
    ("cwd", "written"),
    [("/a/b\tc/d", "/a"), ("/a/b/new\nline", "/a/b"), ("/\t", "/"), ("/x/\ny", "/x")],
)
def test_a_directory_the_format_cannot_say_becomes_its_parent_with_a_warning(cwd: str, written: str) -> None:
    text, warnings = to_tsv(single(a_pane(0, cwd=cwd)))
    assert text == f"work\t{written}\t\n"
    assert len(warnings) == 1


def test_an_unknown_directory_never_leaves_the_column_empty() -> None:
    lost = a_pane(0, cwd="", identity=in_conversation())
    assert to_tsv(single(lost, path="/session")) == (f"work\t/session\t{UUID}\n", ())
    text, warnings = to_tsv(single(lost))
    assert text == f"work\t~\t{UUID}\n"
    assert len(warnings) == 1


def test_a_name_the_format_cannot_say_is_left_out_with_a_warning() -> None:
    text, warnings = to_tsv(single(a_pane(0), name="a\tb"))
    assert (text, len(warnings)) == ("", 1)


NAMES = st.binary(min_size=1, max_size=8).filter(lambda raw: not set(raw) & set(b"\0\t\n"))


@given(names=st.lists(NAMES, min_size=1, max_size=4, unique=True), cwd=st.binary(max_size=8))
def test_what_is_exported_is_imported_the_same(names: list[bytes], cwd: bytes) -> None:
    path = decode(b"/" + cwd.translate(None, b"\0\t\n"))
    identities = [in_conversation(), *[None] * len(names)]
    snapshot = a_snapshot(
        a_topology(
            [a_session(n, decode(name)) for n, name in enumerate(names)],
            {f"${n}": [a_link(n, n)] for n in range(len(names))},
            [a_pane(n, window=f"@{n}", cwd=path, identity=identities[n]) for n in range(len(names))],
        )
    )
    text, warnings = to_tsv(snapshot)
    capture = from_tsv(encode(text), server=SERVER, taken_at=WHEN)
    assert warnings == ()
    assert [encode(session.name) for session in capture.topology.sessions] == sorted(names)
    assert {pane.cwd for pane in capture.topology.panes} == {path}


def test_the_script_reads_back_what_was_written() -> None:
    """A shell merges tabs in a row: with an empty column in the middle the id would be read as the directory."""
    panes = [
        a_pane(0, window="@0", cwd='/it\'s a "dir" \\ $HOME', identity=in_conversation()),
        a_pane(1, window="@1", cwd=""),
        a_pane(2, window="@2", cwd="/a\tb", identity=in_conversation(OTHER_UUID)),
    ]
    names = ["pipe|sess $(x)", " ü ", "it's"]
    snapshot = a_snapshot(
        a_topology([a_session(n, name) for n, name in enumerate(names)], {"": [a_link(n, n) for n in range(3)]}, panes)
    )
    loop = 'while IFS=$\'\\t\' read -r sess cwd uuid; do printf \'<%s><%s><%s>\\n\' "$sess" "$cwd" "$uuid"; done'
    read = subprocess.run(["bash", "-c", loop], input=encode(to_tsv(snapshot)[0]), capture_output=True, check=True)
    assert read.stdout.decode().splitlines() == [
        "< ü ><~><>",
        f"<it's></><{OTHER_UUID}>",
        f'<pipe|sess $(x)></it\'s a "dir" \\ $HOME><{UUID}>',
    ]


def test_a_manifest_becomes_sessions_of_one_pane_with_guessed_conversations() -> None:
    capture = from_tsv(f"api\t/srv/api\t{UUID}\nweb\t\t\n".encode(), server=SERVER, taken_at=WHEN)
    topology = capture.topology
    assert (capture.server, capture.taken_at, topology.process.version) == (SERVER, WHEN, "imported")
    assert [(session.id, session.name) for session in topology.sessions] == [("$0", "api"), ("$1", "web")]
    assert [(link.session, link.window, link.index, link.active) for link in topology.links] == [
        ("$0", "@0", 0, True),
        ("$1", "@1", 0, True),
    ]
    api, web = topology.panes
    assert (api.id, api.window, api.cwd) == ("%0", "@0", "/srv/api")
    assert api.identity is not None
    assert (api.identity.agent, api.identity.conversation) == ("claude", UUID)
    assert (api.identity.certain, api.identity.evidence) == (False, Evidence.GUESS)
    assert (web.cwd, web.identity) == ("", None)
    assert to_tsv(as_snapshot(capture))[0] == "api\t/srv/api\t\nweb\t~\t\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("work\t/w", "2 columns"),
        ("work", "1 columns"),
        ("", "1 columns"),
        (f"work\t/w\t{UUID}\tmore", "4 columns"),
        (f"\t/w\t{UUID}", "no name"),
        ("api\t/w\t", "before"),
        ("work\t/w\t1234", "not a conversation"),
        (f"work\t/w\t{UUID.upper()}", "not a conversation"),
        (f"work\t/w\t{UUID}\r", "not a conversation"),
        ("ag_12180_/tmp/w\t\t", "run together"),
        ("ag_12180_\t\t", "run together"),
    ],
)
def test_a_mistake_is_named_with_its_line(line: str, words: str) -> None:
    raw = f"api\t/srv/api\t\n{line}\nlast\t/\t\n".encode()
    with pytest.raises(ImportFailed, match=rf"\ALine 2: .*{words}.*\.\Z") as failure:
        from_tsv(raw, server=SERVER, taken_at=WHEN)
    assert failure.value.data == {"line": 2}


def test_a_manifest_emptied_by_a_crash_is_refused() -> None:
    with pytest.raises(ImportFailed, match="empty"):
        from_tsv(b"", server=SERVER, taken_at=WHEN)
