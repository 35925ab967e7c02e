"""What ended together is taken in so that the most is known of it."""

from __future__ import annotations

from itertools import permutations

import pytest

from perdure.daemon.ends import in_turn
from perdure.daemon.stimuli import Gone, Key, What
from perdure.host.exits import Exit
from perdure.model.run import Program

SERVER, AGENT, SHELL = Key(What.SERVER, "s"), Key(What.AGENT, "r1"), Key(What.PANE, "r2")


def _ended(*keys: Key, server: Exit) -> dict[Key, Gone]:
    program = Program(pid=1, start_ticks=1)
    return {key: Gone(program, server if key is SERVER else Exit(status=0), 1.0) for key in keys}


def _first_and_last(server: Exit) -> set[tuple[Key, Key]]:
    turns = [in_turn(_ended(*keys, server=server)) for keys in permutations((SERVER, AGENT, SHELL))]
    return {(turn[0][0], turn[-1][0]) for turn in turns}


def test_how_the_last_agent_ended_is_taken_in_before_the_server_that_went_with_it() -> None:
    assert {last for _, last in _first_and_last(Exit(status=0))} == {SERVER}


@pytest.mark.parametrize("how", [Exit(signal=9), Exit(status=1), Exit()])
def test_a_server_that_fell_is_taken_in_before_whatever_it_took_along(how: Exit) -> None:
    assert {first for first, _ in _first_and_last(how)} == {SERVER}
