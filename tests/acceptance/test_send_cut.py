"""What a terminal cuts off is not said to have been delivered, where the agent's own transcript tells."""

from __future__ import annotations

from tests.acceptance.boxing import screen
from tests.acceptance.kit import only_json, wait_for
from tests.acceptance.simulants import Simulants
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


def test_a_text_of_which_a_part_arrived_is_unconfirmed(
    private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure
) -> None:
    agents = Simulants(private_home)
    made = tmux.run(
        *("new-session", "-d", "-P", "-F", "#{pane_id}", "-s", "work", "-n", "w", agents.path, "Remember the milk.")
    )
    pane = made.decode().strip()
    agents.await_running(1, 2)
    wait_for(lambda: screen(tmux, pane).rstrip().endswith("you ▸"), "the input")
    # It reads whole lines, of which a terminal keeps 4095 bytes.
    text = " ".join(f"word{number}" for number in range(2000))
    ran = perdure("send", "--json", pane, "-", input=text)
    told = only_json(ran)
    assert (ran.code, told["result"], told["by"]) == (4, "unconfirmed", None)
    assert "its transcript has only a part of the text" in told["why"]
    assert str(len(text)) in told["why"]
    wait_for(lambda: screen(tmux, pane).rstrip().endswith("you ▸"), "the input")
    assert only_json(perdure.ok("send", "--json", pane, "and now all of it"))["result"] == "delivered"
    agents.end_all()
