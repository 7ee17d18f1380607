"""The first page: the runs in the store."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from parley.store import RunInfo, UnreadableRun
from parley.web.app import site_of


def show_runs(request: Request) -> Response:
    """All runs, newest first, and the files that cannot be read."""
    site = site_of(request)
    runs = list(site.store.runs())
    return site.page(
        "runs.html",
        runs=[run for run in runs if isinstance(run, RunInfo)],
        unreadable=[run for run in runs if isinstance(run, UnreadableRun)],
        location=site.store.check().location,
    )


ROUTES = [Route("/", show_runs)]
