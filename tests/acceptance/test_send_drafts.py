"""What somebody has begun to type at the terminal is not sent along with what an agent is told from elsewhere."""

from __future__ import annotations

from tests.acceptance.boxing import screen
from tests.acceptance.kit import only_json, wait_for
from tests.acceptance.simulants import Simulants
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


def test_nothing_is_joined_with_what_stands_in_the_input_unless_that_is_wanted(
    private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure
) -> None:
    agents = Simulants(private_home)
    tmux.run("new-session", "-d", "-s", "work", "-n", "w", agents.path, "--think", "0.1")
    agents.await_running(1, 0)
    wait_for(lambda: "you ▸" in screen(tmux, "work:"), "the input")
    tmux.run("send-keys", "-t", "work:", "-l", "delete the ")
    wait_for(lambda: "you ▸ delete the" in screen(tmux, "work:"), "what was begun")
    refused = perdure("send", "--json", "work", "build is slow")
    told = only_json(refused)
    assert (refused.code, told["result"], told["enters"]) == (6, "refused", 0)
    assert told["draft"] == "delete the"
    assert "'delete the' stands in its input" in told["why"]
    assert "build" not in screen(tmux, "work:")
    # Keys are what somebody presses who has seen it.
    perdure.ok("send", "work", "--key", "C-u")
    told = only_json(perdure.ok("send", "--json", "work", "build is slow"))
    assert (told["result"], told["draft"]) == ("delivered", None)
    agents.await_running(1, 2)
    wait_for(lambda: screen(tmux, "work:").rstrip().endswith("you ▸"), "the input again")
    tmux.run("send-keys", "-t", "work:", "-l", "and then ")
    wait_for(lambda: "you ▸ and then" in screen(tmux, "work:"), "what was begun")
    perdure.ok("send", "work", "--anyway", "rest")
    wait_for(lambda: "number 2 of this conversation: and then rest" in screen(tmux, "work:"), "both as one")
    agents.end_all()
