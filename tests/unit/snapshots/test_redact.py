from __future__ import annotations

import msgspec

from perdure.model.identity import AgentDetails
from perdure.model.snapshot import Snapshot
from perdure.model.topology import PaneDetails
from perdure.snapshots.redact import redacted
from tests.builders import a_capture, a_pane, a_process, a_program, a_snapshot, an_identity

KEY = "ghp_" + "a1B2" * 9
SECRET = "hunter2"


def a_telling_snapshot() -> Snapshot:
    pane = a_pane(
        title=f"curl -H 'X-Api-Key: {SECRET}'",
        start_command=f'"agent --api-key {SECRET}"',
        options={"@api_key": SECRET, "@note": f"TOKEN={SECRET}"},
        program=a_program("agent", "--token", SECRET, f"--url=https://u:{SECRET}@h"),
        identity=an_identity(),
    )
    details = PaneDetails(
        title=f"using {KEY}",
        processes=(a_process(argv=("agent", f"--password={SECRET}")),),
        agent=AgentDetails(task=f"set API_KEY={SECRET} please", title=f"about {KEY}"),
    )
    capture = a_capture([pane])
    return a_snapshot(
        msgspec.structs.replace(capture, details=msgspec.structs.replace(capture.details, panes={"%0": details}))
    )


def test_no_secret_is_left_anywhere() -> None:
    shown = msgspec.json.encode(redacted(a_telling_snapshot())).decode()
    assert SECRET not in shown
    assert KEY not in shown


def test_everything_else_is_what_it_was() -> None:
    snapshot = a_snapshot(a_capture([a_pane(program=a_program("vim", "notes"), identity=an_identity())]))
    assert redacted(snapshot) == snapshot


def test_the_shape_stays() -> None:
    shown = redacted(a_telling_snapshot())
    program = shown.topology.panes[0].program
    assert program is not None
    assert program.argv == ("agent", "--token", "***", "--url=https://u:***@h")
