from __future__ import annotations

import pytest

from perdure.compat.imported import broken, imported_process, rows
from perdure.errors import ImportFailed
from perdure.model.text import encode
from tests.unit.compat.topologies import WHEN


def test_rows_keep_every_byte_and_count_lines_from_one() -> None:
    (first, columns), (second, empty) = rows(b"caf\xc3\xa9\t\xff\xfe\n\n")
    assert (first, second, empty) == (1, 2, [""])
    assert [encode(column) for column in columns] == [b"caf\xc3\xa9", b"\xff\xfe"]


@pytest.mark.parametrize(
    ("raw", "line", "word"),
    [(b"", 1, "empty"), (b"a\tb\nc\td", 2, "middle"), (b"a\n\0\0\0\0\n", 2, "NUL")],
)
def test_a_file_no_script_wrote_whole_is_refused(raw: bytes, line: int, word: str) -> None:
    with pytest.raises(ImportFailed, match=rf"\ALine {line}: .*{word}.*\.\Z") as failure:
        rows(raw)
    assert failure.value.data == {"line": line}


def test_the_sentence_names_the_line() -> None:
    assert broken(7, "that is wrong").message == "Line 7: that is wrong."


def test_an_imported_server_claims_no_process() -> None:
    process = imported_process(WHEN)
    assert (process.pid, process.started_at, process.version) == (0, WHEN, "imported")
