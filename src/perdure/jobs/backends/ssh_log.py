"""What ssh says of itself, beside what a command prints: it tells its own end from the command's."""

from __future__ import annotations

import os
import re

from perdure.model.secrets import redact_text
from perdure.model.text import decode

#: What ssh ends with for reasons of its own, and commands with for theirs.
OWN_CODE = 255
#: The file in a job's directory.
LOG = "ssh.log"
_STATUS = re.compile(r"^debug1: Exit status (-?\d+)\r?$", re.MULTILINE)
_CHATTER = ("debug", "Transferred:", "Bytes per second:", "OpenSSH_", "Authenticated to")


def was_cut_off(directory: str) -> str | None:
    """Return why nobody knows how a job ended whose ssh ended with 255; None when that was the command's own code.

    ssh says in its log which code it was told, and -1 for none.
    """
    try:
        with open(os.path.join(directory, LOG), "rb") as file:
            said = decode(file.read())
    except OSError:
        return "ssh ended with 255, and nobody knows whether that was the command's own code."
    told = _STATUS.findall(said)
    if told and int(told[-1]) == OWN_CODE:
        return None
    lines = [line.strip() for line in said.splitlines() if not line.startswith(_CHATTER)]
    reason = next((line for line in reversed(lines) if line), "")
    why = f": {redact_text(reason).rstrip('.')[:300]}" if reason else ""
    return f"The connection was cut off{why}. What became of the command there is not known."
