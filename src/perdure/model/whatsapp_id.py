"""The forms of one id on WhatsApp: a number, the same as a JID, with a device, and LIDs."""

from __future__ import annotations

import re

_ID = re.compile(r"\+?(?P<number>[^:@+]+)(?::\d+)?(?:@(?P<domain>[^:@]+))?")
_NUMBERS = frozenset({"s.whatsapp.net", "c.us", "hosted"})
_LIDS = frozenset({"lid", "hosted.lid"})
#: How the plain form of a LID ends: its digits may be somebody's number.
LID = "@lid"


def plain_id(whatsapp_id: str) -> str:
    """Return an id without `+`, device and the domain of numbers; what is no person's id stays as it is."""
    found = _ID.fullmatch(whatsapp_id)
    if found is None:
        return whatsapp_id
    domain = (found["domain"] or "").lower()
    if domain in _LIDS:
        return found["number"] + LID
    return found["number"] if not domain or domain in _NUMBERS else whatsapp_id
