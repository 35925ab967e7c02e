"""One person's many ids on WhatsApp: telephone number, JID with a device, LID."""

from __future__ import annotations

from collections.abc import Mapping

from perdure.model.whatsapp_id import LID, plain_id


class Aliases:
    """Which ids are the same person's, as the bridge has found out: each with another one, in either direction."""

    def __init__(self, pairs: Mapping[str, str] | None = None) -> None:
        groups: dict[str, set[str]] = {}
        for one, other in (pairs or {}).items():
            ids = {plain_id(one), plain_id(other)}
            # Whatever either of them was known to be is one person from here on.
            merged = ids.union(*(groups.get(each, ()) for each in ids))
            groups |= dict.fromkeys(merged, merged)
        self._groups = groups
        self._chosen = {each: min(group, key=_rank) for each, group in groups.items()}

    def canonical(self, whatsapp_id: str) -> str:
        """Return the one id a person is known by, whichever of theirs is given.

        A LID nobody has matched with a number keeps its `@lid`: its digits may be somebody else's number.
        """
        plain = plain_id(whatsapp_id)
        if plain in self._chosen or not plain.endswith(LID):
            return self._chosen.get(plain, plain)
        # Bridges write down LIDs without saying that they are. What everybody of a group is known by is a number, though.
        bare = plain.removesuffix(LID)
        known_by = self._chosen.get(bare, bare)
        return plain if known_by == bare else known_by

    def every(self, whatsapp_id: str) -> tuple[str, ...]:
        """Return all ids a person is known by, in their plain forms, the canonical one first."""
        chosen = self.canonical(whatsapp_id)
        group = self._groups.get(chosen, {chosen})
        lids = {each + LID for each in group if not each.endswith(LID) and self.canonical(each + LID) == chosen}
        return chosen, *sorted((group | lids) - {chosen})


def _rank(whatsapp_id: str) -> tuple[bool, int, str]:
    return not (whatsapp_id.isascii() and whatsapp_id.isdigit()), len(whatsapp_id), whatsapp_id


NO_ALIASES = Aliases()
