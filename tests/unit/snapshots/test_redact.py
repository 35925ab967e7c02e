from __future__ import annotations

import msgspec

from perdure.model.identity import AgentDetails
from perdure.model.snapshot import Snapshot
from perdure.model.topology import PaneDetails
from perdure.snapshots.redact import Discretion, redacted
from tests.builders import a_capture, a_pane, a_process, a_program, a_snapshot, an_identity

SHOWN = Discretion(harmless=frozenset({"EDITOR", "BASE_URL", "NAMED"}), private=frozenset({"NAMED"}))
KEY = "ghp_" + "a1B2" * 9
SECRET = "hunter2"
#: One by its name, one by its shape, one by a password in it, one because nobody vouches for it, one as asked for.
VARIABLES = {
    "API_KEY": SECRET,
    "EDITOR": f"vi {KEY}",
    "BASE_URL": f"https://u:{SECRET}@h",
    "CORP_LOGIN": SECRET,
    "NAMED": SECRET,
}


def a_telling_snapshot() -> Snapshot:
    pane = a_pane(
        title=f"curl -H 'X-Api-Key: {SECRET}'",
        start_command=f'"agent --api-key {SECRET}"',
        options={"@api_key": SECRET, "@note": f"TOKEN={SECRET}"},
        program=a_program("agent", "--token", SECRET, f"--url=https://u:{SECRET}@h", environ=VARIABLES),
        identity=an_identity(),
    )
    details = PaneDetails(
        title=f"using {KEY}",
        processes=(a_process(argv=("agent", f"--password={SECRET}"), environ=VARIABLES),),
        agent=AgentDetails(task=f"set API_KEY={SECRET} please", title=f"about {KEY}"),
    )
    capture = a_capture([pane])
    session = msgspec.structs.replace(capture.topology.sessions[0], environment={"NAMED": SECRET, "PLAIN": "words"})
    topology = msgspec.structs.replace(capture.topology, sessions=(session,))
    capture = msgspec.structs.replace(capture, topology=topology)
    return a_snapshot(
        msgspec.structs.replace(capture, details=msgspec.structs.replace(capture.details, panes={"%0": details}))
    )


def test_no_secret_is_left_anywhere() -> None:
    shown = msgspec.json.encode(redacted(a_telling_snapshot(), SHOWN)).decode()
    assert SECRET not in shown
    assert KEY not in shown


def test_everything_else_is_what_it_was() -> None:
    program = a_program("vim", "notes", environ={"EDITOR": "vi", "BASE_URL": "https://h"})
    snapshot = a_snapshot(a_capture([a_pane(program=program, identity=an_identity())]))
    assert redacted(snapshot, SHOWN) == snapshot


def test_the_shape_stays() -> None:
    shown = redacted(a_telling_snapshot(), SHOWN)
    program = shown.topology.panes[0].program
    assert program is not None
    assert program.argv == ("agent", "--token", "***", "--url=https://u:***@h")
    assert program.environ == {**dict.fromkeys(VARIABLES, "***"), "EDITOR": "vi ***", "BASE_URL": "https://u:***@h"}
    assert shown.details.panes["%0"].processes[0].environ == program.environ
    assert shown.topology.sessions[0].environment == {"NAMED": "***", "PLAIN": "words"}
