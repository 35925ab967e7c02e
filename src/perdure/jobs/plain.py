"""Modules of the standard library as the interpreter itself has them.

What Python adds to them, enumerations and classes, would take a supervisor a megabyte that it never looks at.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signal
else:
    import _signal as signal

__all__ = ["signal"]
