"""Writing down what a job prints: segments of raw bytes, marks of what was standard error, the oldest removed.

A segment is `out.OFFSET`, its marks are `err.OFFSET`: sixteen bytes that say how many lines there were before it, then sixteen for
each stretch of standard error, from and to, all of it counted from the first byte the job printed. Bytes that could
not be written count too: the next segment then begins behind a gap. `output` reads it.

Only the standard library, and as little of it as possible: supervisors run this by the hundred (see `foreman`).
"""

from __future__ import annotations

import os
import time

#: The output is kept in so many pieces.
PIECES = 8
#: A segment is no smaller, whatever the cap.
SMALLEST = 4096
#: The size of a mark.
MARK = 16
#: How long nothing is tried after the disk has refused, in seconds.
_RESPITE = 0.5
#: More segments than that are not kept, however small a full disk made them.
_MOST = 500
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def marked(first: int, second: int) -> bytes:
    """Return a mark as it is written down."""
    return first.to_bytes(8, "big") + second.to_bytes(8, "big")


class Keeper:
    """What one job prints, in the present directory; together with the marks never more than `cap` bytes."""

    __slots__ = (
        "_limit",
        "_lines",
        "_marks",
        "_marks_end",
        "_old",
        "_out",
        "_start",
        "_stretch",
        "_used",
        "_wait",
        "dropped",
        "printed",
    )

    def __init__(self, cap: int) -> None:
        #: How much was printed, and how much of that could not be kept.
        self.printed = 0
        self.dropped = 0
        self._limit = max(cap // PIECES, SMALLEST)
        self._lines = 0
        # The segment that is being written, and the bytes in it and its marks.
        self._out = self._marks = -1
        self._start = self._used = self._marks_end = 0
        # The last stretch of standard error in it.
        self._stretch = (-1, -1)
        # The segments before it: where they begin, and their bytes.
        self._old: list[tuple[int, int]] = []
        self._wait = 0.0

    def keep(self, buffer: bytearray, size: int, is_error: bool) -> None:
        """Write down what stands in the buffer. Never fails: what the disk does not take is counted and gone."""
        at = 0
        with memoryview(buffer) as view:
            while at < size and self._is_ready():
                room = self._limit - self._used - MARK
                part = min(size - at, room)
                done = self._write(view[at : at + part], is_error)
                self._lines += buffer.count(b"\n", at, at + done)
                self.printed += done
                at += done
                if done < part:
                    self._fail()
                    break
        if at < size:
            self._lines += buffer.count(b"\n", at, size)
            self.printed += size - at
            self.dropped += size - at

    def close(self) -> None:
        """Write nothing more."""
        self._shut()

    def _is_ready(self) -> bool:
        if self._out >= 0 and self._used + MARK < self._limit:
            return True
        if self._wait and time.monotonic() < self._wait:
            return False
        self._shut()
        self._remove_oldest()
        return self._open()

    def _open(self) -> bool:
        try:
            self._marks = os.open(b"err.%020d" % self.printed, _FLAGS, 0o600)
            if os.write(self._marks, marked(self._lines, 0)) != MARK:
                raise OSError
            self._out = os.open(b"out.%020d" % self.printed, _FLAGS, 0o600)
        except OSError:
            self._start = self.printed
            self._fail()
            return False
        self._start, self._used, self._marks_end = self.printed, MARK, MARK
        self._stretch = (-1, -1)
        self._wait = 0.0
        return True

    def _write(self, view: memoryview, is_error: bool) -> int:
        """Write a part into the segment, and return how much of it went in."""
        end = self.printed + len(view)
        try:
            if is_error:
                # Before what it speaks of: whoever reads in between, or after we are gone, never takes the one for the other.
                self._mark(end)
            done = os.write(self._out, view)
        except OSError:
            done = 0
        if is_error and done < len(view):
            self._unmark(self.printed + done)
        self._used += done
        return done

    def _mark(self, end: int) -> None:
        begin, until = self._stretch
        if until != self.printed:
            begin = self.printed
            self._marks_end += MARK
            self._used += MARK
        self._stretch = (begin, end)
        if os.pwrite(self._marks, marked(begin, end), self._marks_end - MARK) != MARK:
            raise OSError

    def _unmark(self, end: int) -> None:
        try:
            os.pwrite(self._marks, marked(self._stretch[0], end), self._marks_end - MARK)
        except OSError:
            # Without a place for it there is no mark to take back, either.
            pass

    def _fail(self) -> None:
        """The disk takes nothing more: let this segment be, and try another a little later."""
        self._shut()
        self._wait = time.monotonic() + _RESPITE

    def _shut(self) -> None:
        if self._out >= 0:
            os.close(self._out)
        if self._marks >= 0:
            os.close(self._marks)
            if self._start < self.printed:
                self._old.append((self._start, self._used))
            else:
                self._unlink(self._start)
        self._out = self._marks = -1

    def _remove_oldest(self) -> None:
        while len(self._old) > _MOST or sum(used for _, used in self._old) > self._limit * (PIECES - 1):
            self._unlink(self._old.pop(0)[0])

    def _unlink(self, start: int) -> None:
        for kind in (b"out", b"err"):
            try:
                os.unlink(b"%s.%020d" % (kind, start))
            except OSError:
                pass
