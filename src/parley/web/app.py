"""The web application: the pages, each from its own file, behind the checks of `safety`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.resources import files
from pkgutil import iter_modules
from typing import Any
from urllib.parse import quote

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from parley.errors import ParleyError, StoreError, UsageError
from parley.providers._secrets import redact
from parley.report.html import read_style, render
from parley.report.model_signs import ModelSigns
from parley.report.run_page import title_run
from parley.store import Store
from parley.store.types import RunRef
from parley.tables import shorten
from parley.web.background import Background
from parley.web.following import LiveRuns
from parley.web.run_catalogue import RunCatalogue
from parley.web.run_renderer import RunRenderer
from parley.web.safety import HEADERS, PERSONAL, Guard, Safety

HERE = files("parley.web")
MOST_RESULTS = 20  # results that are kept as HTML, each up to a few MB
FILES = {"pages.js": "text/javascript", "icon.svg": "image/svg+xml"}


@dataclass(frozen=True)
class Site:
    """What the pages need: the store they read, and what is computed for them."""

    store: Store
    public: bool = False  # served to other machines, so only people with the token may read

    @cached_property
    def catalogue(self) -> RunCatalogue:
        """The runs as the first page lists them."""
        return RunCatalogue(self.store)

    @cached_property
    def results(self) -> Background[Markup]:
        """The results of runs as HTML, by location."""
        return Background(MOST_RESULTS)

    @cached_property
    def live(self) -> LiveRuns:
        """The runs that browsers follow."""
        return LiveRuns(self.store, RunRenderer(self))

    def render(self, template: str, signs: ModelSigns | None = None, **facts: Any) -> Markup:
        """A template with these facts."""
        own = {"site": self, "run_link": run_link, "title_run": title_run}
        return render(template, signs, **own, **facts)

    def page(self, template: str, status: int = 200, **facts: Any) -> HTMLResponse:
        """A page from its template."""
        return HTMLResponse(self.render(template, **facts), status)


def make_site(store: Store, public: bool = False) -> Site:
    """The site of a store."""
    return Site(store, public)


def find_pages() -> list[str]:
    """The modules of this room that serve pages: those whose name ends with `_page`."""
    names = [found.name for found in iter_modules([str(HERE)])]
    return sorted(name for name in names if name.endswith("_page"))


def make_app(site: Site, safety: Safety, pages: Iterable[str] | None = None) -> Starlette:
    """The application with these pages, by module name; with all of them by default.

    The invitation to vote and the link to play are pages of their own, so a server for voters
    shows no scores.
    """
    routes: list[BaseRoute] = [Route("/static/{name}", serve_file)]
    chosen = list(find_pages() if pages is None else pages)
    for name in chosen:
        routes += import_module(f"parley.web.{name}").ROUTES
    handlers: dict[Any, Any] = {
        HTTPException: answer_http_error,
        UsageError: answer_usage_error,
        StoreError: answer_store_error,
        ParleyError: answer_store_error,
        ClientDisconnect: answer_nobody,
        Exception: answer_failure,
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.state.site = site
    app.state.lists_runs = "runs_page" in chosen
    app.add_middleware(Guard, safety=safety)
    return app


def site_of(request: Request) -> Site:
    """The site that a request is for."""
    site: Site = request.app.state.site
    return site


def run_of(request: Request) -> RunRef:
    """The run that an address names by its `id`; a page with status 404 if there is none."""
    id = request.path_params["id"]
    ref = site_of(request).store.find_exact(id)
    if ref is None:
        told = f"There is no run {shorten(id)!r} in this store. It may have been moved or deleted."
        raise HTTPException(404, told)
    return ref


def run_link(ref: RunRef, *path: object) -> str:
    """The address of a run, or of a page below it: `run_link(ref, "match", 7)`."""
    return "/".join(["/run", quote(ref.id, safe="", errors="surrogateescape"), *map(str, path)])


async def serve_file(request: Request) -> Response:
    """The style sheet, the script or the icon."""
    name = request.path_params["name"]
    if name == "style.css":
        return Response(read_style(), media_type="text/css")
    if name not in FILES:
        raise HTTPException(404)
    return Response(HERE.joinpath("static", name).read_bytes(), media_type=FILES[name])


def show_problem(request: Request, status: int, title: str, sentences: Sequence[str]) -> Response:
    """A page that says what is wrong and what to do."""
    # people with a personal link may not see the runs
    has_runs = request.app.state.lists_runs and not request.url.path.startswith(PERSONAL)
    facts = {"title": title, "sentences": sentences, "has_runs": has_runs}
    return site_of(request).page("problem.html", status, **facts)


async def answer_http_error(request: Request, wrong: Exception) -> Response:
    """An address that does not exist, a method that is not allowed, and the like."""
    assert isinstance(wrong, HTTPException)
    if wrong.status_code == 404:
        told = "There is nothing at this address. It may be mistyped, or it may have been removed."
        told = told if wrong.detail == "Not Found" else wrong.detail
        return show_problem(request, 404, "Not found", [told])
    detail = str(wrong.detail)
    return show_problem(request, wrong.status_code, detail, ["Go back and try again."])


async def answer_usage_error(request: Request, wrong: Exception) -> Response:
    """A filter, an order or a number that cannot be used."""
    return show_problem(request, 400, "This address cannot be used", [redact(str(wrong))])


async def answer_store_error(request: Request, wrong: Exception) -> Response:
    """A run file that vanished or cannot be read."""
    return show_problem(request, 503, "This run cannot be read now", [redact(str(wrong))])


async def answer_failure(request: Request, wrong: Exception) -> Response:
    """An error in Parley itself: visitors see no traceback, the terminal does."""
    from traceback import format_exception

    print(redact("".join(format_exception(wrong))), file=sys.stderr)
    told = "Parley could not make this page. The terminal that runs the server shows the error."
    answer = show_problem(request, 500, "Something went wrong", [told])
    answer.headers.update(HEADERS)  # it does not pass the guard
    return answer


async def answer_nobody(request: Request, wrong: Exception) -> Response:
    """The browser left before its form had arrived."""
    return Response(status_code=400)
