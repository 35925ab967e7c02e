"""Giving back memory that a supervisor had for its beginnings: most of them do nothing from then on but wait.

What the interpreter is made of lies in files; a process that no longer runs a part of it need not hold that. It is
read again, from memory as a rule, when it is needed after all.

Only the standard library, and as little of it as possible: supervisors run this by the hundred (see `foreman`).
"""

from __future__ import annotations

#: What `madvise` calls it: the kernel may forget that we hold this.
_FORGET = 4


def spare_ranges() -> list[tuple[int, int]]:
    """Return where parts of files lie in our memory that nobody has changed, nor can: each as address and size.

    Asked once: what is forked off has them in the same places.
    """
    found = []
    address = size = 0
    try:
        with open("/proc/self/smaps", "rb") as file:
            for line in file:
                words = line.split()
                if not words[0].endswith(b":"):
                    is_spare = len(words) > 5 and words[5].startswith(b"/") and b"w" not in words[1]
                    begin, _, end = words[0].partition(b"-")
                    address, size = int(begin, 16), int(end, 16) - int(begin, 16) if is_spare else 0
                elif words[0] == b"Anonymous:" and size and words[1] == b"0":
                    # What was changed before it was locked, by the linker as a rule, is nowhere else to be found.
                    found.append((address, size))
    except OSError:
        return []
    return found


def forget(ranges: list[tuple[int, int]]) -> None:
    """Let go of these parts of files until they are needed again. Never fails: then they are held on to."""
    try:
        import _ctypes

        kind = type("Address", (_ctypes._SimpleCData,), {"_type_": "P"})
        madvise = _ctypes.dlsym(_ctypes.dlopen("", 2), "madvise")
        for address, size in ranges:
            _ctypes.call_function(madvise, (kind(address), kind(size), _FORGET))
    except (ImportError, AttributeError, OSError, TypeError):
        pass
