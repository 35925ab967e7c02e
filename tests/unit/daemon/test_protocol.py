"""What crosses the socket comes out as it went in, whatever it is."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import errors
from perdure.daemon import protocol
from perdure.daemon.protocol import Events, Failure, Line, Wait
from perdure.model.event import EventKind, Lagged
from perdure.model.text import encode
from tests.unit.live.events import an_event

TEXT = st.text(max_size=20)
REQUESTS = st.one_of(
    st.builds(protocol.AskStatus, id=st.integers(0, 9)),
    st.builds(protocol.AskRuns, over=st.booleans()),
    st.builds(protocol.AskRun, run=TEXT),
    st.builds(
        Wait,
        run=TEXT,
        until=st.lists(TEXT, min_size=1, max_size=3).map(tuple),
        timeout=st.none() | st.floats(0, 1e6, allow_nan=False),
    ),
    st.builds(protocol.MarkSeen, run=TEXT),
    st.builds(
        Events,
        after=st.integers(0, 1 << 62),
        follow=st.booleans(),
        run=st.none() | TEXT,
        kinds=st.lists(st.sampled_from(EventKind), max_size=3).map(tuple),
        limit=st.integers(1, protocol.LARGEST_PAGE),
    ),
)


@given(request=REQUESTS)
def test_a_request_arrives(request: protocol.AnyRequest) -> None:
    raw = protocol.encode_line(request)
    assert raw.count(b"\n") == 1
    assert protocol.decode_request(raw) == request
    assert protocol.id_of(raw) == request.id


@given(raw=st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_anything_else_is_a_sentence(raw: bytes) -> None:
    protocol.id_of(raw)
    with pytest.raises(errors.UsageError, match="This is no request"):
        protocol.decode_request(raw)
    with suppress(errors.PerdureError):
        protocol.decode_line(raw)


def test_a_byte_that_is_no_text_crosses_as_it_is_written_everywhere() -> None:
    raw = protocol.encode_line(protocol.AskRun(run="work\udcff"))
    request = protocol.decode_request(raw)
    assert isinstance(request, protocol.AskRun)
    assert encode(request.run) == b"work\xff"


def _kinds(kind: type[errors.PerdureError]) -> list[type[errors.PerdureError]]:
    return [kind, *(each for below in kind.__subclasses__() for each in _kinds(below))]


@pytest.mark.parametrize("kind", [each for each in _kinds(errors.PerdureError) if each.__module__ == "perdure.errors"])
def test_an_error_arrives_as_what_it_was(kind: type[errors.PerdureError]) -> None:
    line = protocol.encode_line(Line(id=1, error=protocol.failure_from(kind("Why.", path="/x", odd={1, 2}))))
    failure = protocol.decode_line(line).error
    assert isinstance(failure, Failure)
    error = protocol.error_from(failure)
    assert type(error) is kind
    assert (error.message, error.data["path"], failure.exit_code) == ("Why.", "/x", kind.exit_code)


def test_an_error_of_a_newer_daemon_keeps_its_exit_code() -> None:
    data = {"message": "twice", "self": 1, "x": 2}
    error = protocol.error_from(Failure(code="brand_new", message="Why.", data=data, exit_code=6))
    assert (error.exit_code, error.message, error.data) == (6, "Why.", {"x": 2})
    odd = protocol.error_from(Failure(code="brand_new", message="Why.", exit_code=77))
    assert odd.exit_code == 1


def test_each_line_says_one_thing() -> None:
    assert protocol.encode_line(Line(id=1, ok=None)) == b'{"id":1,"ok":null}\n'
    assert protocol.encode_line(Line(id=1, lagged=Lagged(after=3))) == b'{"id":1,"lagged":{"after":3}}\n'
    event = protocol.encode_line(Line(id=1, event=an_event(5)))
    assert protocol.decode_line(event).event == an_event(5)
    assert list(msgspec.json.decode(event)) == ["id", "event"]
