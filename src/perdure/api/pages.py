"""The dashboard's own files: the same for everybody, and nothing of anybody in them. What they show is asked for behind the guard."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated, Any

from litestar import Request, Response, get
from litestar.exceptions import NotFoundException
from litestar.params import PathParameter
from litestar.response import Redirect

import perdure

#: Where the dashboard is built to, in a checkout as in a wheel.
DIST = os.path.join(os.path.dirname(perdure.__file__), "web_dist")
#: The addresses of its screens: every one is the same page, which reads off its address what to show.
SCREENS = ("runs", "time-machine", "chats", "jobs", "events", "settings")

#: What each kind of file is told as; that texts are UTF-8 is added to it.
_KINDS = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".html": "text/html",
    ".woff2": "font/woff2",
    ".png": "image/png",
}
#: A name says what is in it: another build has another name.
_FOR_GOOD = "public, max-age=31536000, immutable"
#: Asked for again each time, and sent only when it has changed.
_FOR_NOW = "no-cache"

_UNBUILT = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Perdure</title></head>
<body>
<h1>The dashboard is not built</h1>
<p>This perdure was installed from its sources on a machine without Node.js. Everything else works: the command line, and the
interface for programs at <a href="/schema/openapi.json">/schema/openapi.json</a>.</p>
<p>To have the dashboard, install Node.js 20.19 or newer, and say this where the sources are:</p>
<pre>make web</pre>
<p>Then load this page again. A wheel has the dashboard in it.</p>
</body>
</html>
"""

Name = Annotated[str, PathParameter(max_length=200)]


@get(
    ["/", *(f"/{screen}" for screen in SCREENS), *(f"/{screen}/{{id:str}}" for screen in SCREENS)],
    include_in_schema=False,
)
async def page() -> Response[bytes]:
    """The page, whichever screen it shows; where none was built, how to build it."""
    return await the_page()


@get(
    ["/{rest:path}", *(f"/{screen}/{{id:str}}/{{rest:path}}" for screen in SCREENS)],
    include_in_schema=False,
    sync_to_thread=False,
)
def nowhere(request: Request[Any, Any, Any]) -> Response[Any]:
    """What is at no address of ours: a person is led to the first screen, a program is told."""
    if wants_page(request):
        return Redirect("/", status_code=303)
    raise NotFoundException("Nothing is at this address.")


def wants_page(request: Request[Any, Any, Any]) -> bool:
    """Return whether a browser asks on behalf of a person, who wants to see something."""
    return "text/html" in request.headers.get("accept", "")


async def the_page(*, status: int = 200) -> Response[bytes]:
    """Return the page, with a status that says whether it is what was asked for."""
    try:
        body = await asyncio.to_thread(_read, "index.html")
    except OSError:
        body, status = _UNBUILT.encode(), 503
    return Response(body, status_code=status, media_type=_KINDS[".html"], headers={"cache-control": "no-store"})


@get("/assets/{name:str}", include_in_schema=False)
async def asset(name: Name) -> Response[bytes]:
    """A part of the page, by the name of its build."""
    return await asyncio.to_thread(_file, "assets", name, cache=_FOR_GOOD)


@get("/icon.svg", include_in_schema=False)
async def icon() -> Response[bytes]:
    """The picture a browser shows for the page."""
    return await asyncio.to_thread(_file, "icon.svg", cache=_FOR_NOW)


@get("/look.js", include_in_schema=False)
async def look() -> Response[bytes]:
    """What chooses dark or light before anything is painted."""
    return await asyncio.to_thread(_file, "look.js", cache=_FOR_NOW)


def _file(*parts: str, cache: str) -> Response[bytes]:
    """A file of the build. Only a plain name that stands in its directory is one, so no name leads elsewhere."""
    folder = os.path.join(DIST, *parts[:-1])
    kind = _KINDS.get(os.path.splitext(parts[-1])[1])
    try:
        if kind is None or parts[-1] not in os.listdir(folder):
            raise NotFoundException("There is no such file.")
        body = _read(*parts)
    except OSError as error:
        raise NotFoundException("There is no such file.") from error
    return Response(body, media_type=kind, headers={"cache-control": cache})


def _read(*parts: str) -> bytes:
    with open(os.path.join(DIST, *parts), "rb") as file:
        return file.read()


ROUTES = (page, asset, icon, look, nowhere)
