"""The routes about what is kept and what is to be done, apart from runs."""

from __future__ import annotations

from litestar.types import ControllerRouterHandler

from perdure.api import chats, conversations, events, hosts, jobs, restores, settings, snapshots

ROUTES: tuple[ControllerRouterHandler, ...] = (
    *snapshots.ROUTES,
    *restores.ROUTES,
    *chats.ROUTES,
    *jobs.ROUTES,
    *events.ROUTES,
    *conversations.ROUTES,
    *hosts.ROUTES,
    *settings.ROUTES,
)
