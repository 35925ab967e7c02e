"""Large stores, made once and kept for later runs, beside the real agents' programs: `$XDG_CACHE_HOME/perdure/bench`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping

from bench.chatting import corpus
from bench.chatting.hands import Peers

_MADE = ".made"


def cache_directory(environ: Mapping[str, str]) -> str:
    """Return where stores are kept, for somebody with this environment."""
    caches = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".cache")
    return os.path.join(caches, "perdure", "bench")


def filled(peers: Peers, peer: str, cache: str, *, turns: int, chats: int, long: int) -> str:
    """Return the directory of a peer's store of that size; one that was not finished is made anew."""
    directory = os.path.join(cache, f"{peer}-{turns}-{chats}-{long}-{corpus.EDITION}")
    if os.path.exists(os.path.join(directory, _MADE)):
        return directory
    print(f"{peer}: a store of {turns} turns is made, for this run and later ones …", file=sys.stderr, flush=True)
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    with peers.hands(peer, directory) as (hand,):
        hand.do("fill", turns=turns, chats=chats, long=long)
    with open(os.path.join(directory, _MADE), "w", encoding="utf-8"):
        pass
    return directory
