"""What a route is handed, by the names every route uses for it."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from litestar import Request
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter

from perdure.api.caller import Caller
from perdure.api.replies import LARGEST_PAGE
from perdure.api.world import ApiWorld

#: `world: World`: what the route stands on.
World: TypeAlias = NamedDependency[ApiWorld]
#: `caller: Who`: who asks.
Who: TypeAlias = NamedDependency[Caller]
#: `request: Asked`: the request itself, for its headers.
Asked: TypeAlias = Request[Caller, Any, Any]
#: `id: Id`: which one, from the path.
Id: TypeAlias = Annotated[str, PathParameter()]
#: `limit: Limit = PAGE` and `cursor: Cursor = None`: which page of a list.
Limit: TypeAlias = Annotated[int, QueryParameter(ge=1, le=LARGEST_PAGE, description="How many items at most.")]
Cursor: TypeAlias = Annotated[str | None, QueryParameter(description="`next` of the page before.", max_length=2048)]
