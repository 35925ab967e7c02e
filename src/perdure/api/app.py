"""The application: every route, on one world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from litestar import Litestar, Request
from litestar.di import Provide
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import ControllerRouterHandler

from perdure import __version__
from perdure.api import health, login, metrics, pages, resources, run_actions, runs, socket
from perdure.api.admission import LARGEST_BODY
from perdure.api.bodies import refuse_body
from perdure.api.caller import Caller
from perdure.api.description import WhatIsTaken
from perdure.api.errors import on_failure
from perdure.api.question import Question
from perdure.api.replies import Reply
from perdure.api.taken import Taken, refuse_unknown
from perdure.api.world import ApiWorld

#: Every route there is; each module brings its own. What they are handed: `asking`.
ROUTES: tuple[ControllerRouterHandler, ...] = (
    *health.ROUTES,
    *login.ROUTES,
    *metrics.ROUTES,
    *runs.ROUTES,
    *run_actions.ROUTES,
    *resources.ROUTES,
    *socket.ROUTES,
    *pages.ROUTES,
)


def build_app(world: ApiWorld, *, routes: Sequence[ControllerRouterHandler] = ROUTES) -> Litestar:
    """Return the application. It lets everybody in: `guard` stands before it, and says who asks."""

    def the_world() -> ApiWorld:
        return world

    return Litestar(
        list(routes),
        dependencies={
            "world": Provide(the_world, sync_to_thread=False, use_cache=True),
            "caller": Provide(_caller, sync_to_thread=False),
        },
        before_request=_refuse_unknown,
        exception_handlers={Exception: on_failure},
        request_class=Question,
        response_class=Reply,
        plugins=[WhatIsTaken()],
        openapi_config=OpenAPIConfig(
            title="Perdure",
            version=__version__,
            path="/schema",
            render_plugins=[JsonRenderPlugin()],
            use_handler_docstrings=True,
            components=Components(
                security_schemes={
                    "token": SecurityScheme(type="http", scheme="bearer", description="See `perdure token new`.")
                }
            ),
            security=[{"token": []}],
        ),
        request_max_body_size=LARGEST_BODY,
        logging_config=None,
    )


async def _refuse_unknown(request: Request[Any, Any, Any]) -> None:
    """Refuse what a route for programs would leave unread, or take for something else."""
    taken = Taken(request)
    if taken.is_described:
        refuse_unknown(request, taken)
        await refuse_body(request, taken)


def _caller(request: Request[Caller, Any, Any]) -> Caller:
    return request.user
