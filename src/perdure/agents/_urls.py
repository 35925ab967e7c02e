"""Addresses of model servers."""

from __future__ import annotations

import re


def host_of(url: str) -> str:
    """Return the host's name alone: what is before an @ may be a password, what is after a / a key. "" for no address."""
    authority = re.split(r"[/?#\\]", url.partition("://")[2])[0].rpartition("@")[2]
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    return authority.partition(":")[0].lower()
