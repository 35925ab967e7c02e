"""Names made of content."""

from __future__ import annotations

try:
    # What hashlib itself hands out as blake2b; importing hashlib would load all of OpenSSL for it.
    from _blake2 import blake2b
except ImportError:  # an interpreter built in another way
    from hashlib import blake2b


def digest_of(content: bytes, size: int = 16) -> str:
    """Return the content's digest, twice `size` hexadecimal characters long."""
    return blake2b(content, digest_size=size).hexdigest()
