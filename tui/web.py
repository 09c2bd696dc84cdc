"""The browser in a web browser of this computer: textual-serve, kept to the loopback address and to its own page."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import web
from textual_serve.server import Server

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler, Middleware

HOST = "127.0.0.1"
_RUN = "import sys; from circuitdb.tui.app import Browser; Browser(sys.argv[1], timeout=float(sys.argv[2])).run()"


class LoopbackServer(Server):
    """Serves a database on `HOST`; every tab of the web browser gets a process of its own."""

    def __init__(self, path: str, *, timeout: float, port: int) -> None:
        """`path`: the database file; `timeout`: seconds to wait for one that writes."""
        command = shlex.join([sys.executable, "-P", "-c", _RUN, path, str(timeout)])
        super().__init__(command, host=HOST, port=port, title="circuitdb")

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(_guard(self.port))
        return app

    async def on_startup(self, app: web.Application) -> None:
        """Say nothing: the command has said where it is."""


def _guard(port: int) -> Middleware:
    """Refuse other sites, and keep the page from asking anything of them.

    A web page of a stranger may open a socket to this computer; without the check it could press keys here.
    """
    ours = {f"{name}:{port}" for name in (HOST, "localhost")}
    policy = f"default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob: ws://{HOST}:{port}"

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        origin = request.headers.get("Origin")
        if request.host not in ours or (origin is not None and urlsplit(origin).netloc not in ours):
            raise web.HTTPForbidden(text="circuitdb is served to web pages of this computer alone.")
        response = await handler(request)
        if not response.prepared:
            response.headers["Content-Security-Policy"] = policy
        return response

    return guard
