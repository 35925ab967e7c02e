"""What the daemon says of its own work: in lines, seldom, and without secrets."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from perdure.daemon.logs import AGAIN_AFTER, Seldom, set_up_logs


@pytest.fixture
def said() -> Iterator[io.StringIO]:
    """Where everything that is logged goes."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()
    set_up_logs(stream, verbose=False)
    try:
        yield stream
    finally:
        root.handlers[:], root.level = before


def _lines(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def test_one_line_each_with_the_time_the_level_and_where(said: io.StringIO) -> None:
    logging.getLogger("perdure.somewhere").warning("a sentence\nof two lines")
    (line,) = _lines(said)
    assert line.endswith("+00:00 warning perdure.somewhere: a sentence | of two lines")


def test_an_error_nobody_thought_of_is_one_line_too(said: io.StringIO) -> None:
    try:
        raise RuntimeError("oh")
    except RuntimeError:
        logging.getLogger("perdure.somewhere").exception("it broke")
    (line,) = _lines(said)
    assert "it broke" in line
    assert "RuntimeError: oh" in line


def test_little_is_said_unless_more_is_asked_for(said: io.StringIO) -> None:
    logging.getLogger("perdure.somewhere").info("a detail")
    assert _lines(said) == []


def test_secrets_are_hidden(said: io.StringIO) -> None:
    logging.getLogger("perdure.somewhere").warning(
        "it was started with API_TOKEN=%s", "sk-ant-abcdefghijklmnopqrstuvwx"
    )
    assert "abcdefghijkl" not in said.getvalue()


def test_the_same_again_and_again_is_said_once(said: io.StringIO) -> None:
    for number in range(50):
        try:
            raise RuntimeError("oh")
        except RuntimeError:
            logging.getLogger("perdure.somewhere").exception("pane %s broke", "%1")
        if number == 30:
            logging.getLogger("perdure.somewhere").warning("another thing")
    assert len(_lines(said)) == 2


def test_one_failure_does_not_hide_another(said: io.StringIO) -> None:
    log = logging.getLogger("perdure.somewhere")

    def fail(number: int) -> None:
        try:
            if number % 3 == 0:
                raise RuntimeError(f"oh {number}")
            if number % 3 == 1:
                raise ValueError("no")
            raise RuntimeError("elsewhere")
        except Exception as error:
            log.error("a request failed", exc_info=error)

    for number in range(30):
        fail(number)
    assert ["oh 0" in _lines(said)[0], len(_lines(said))] == [True, 3]


def test_after_a_while_it_is_said_again() -> None:
    seldom = Seldom()

    def is_said(at: float, text: str = "it broke") -> bool:
        record = logging.LogRecord("perdure.somewhere", logging.ERROR, "file", 1, text, None, None)
        record.created = at
        return seldom.filter(record)

    assert [is_said(0.0), is_said(1.0), is_said(AGAIN_AFTER - 1)] == [True, False, False]
    assert [is_said(AGAIN_AFTER + 1), is_said(AGAIN_AFTER + 2)] == [True, False]
    # Nothing is remembered for ever.
    assert all(is_said(AGAIN_AFTER + 3, f"{number} broke") for number in range(5000))
    assert len(seldom) <= 1000
