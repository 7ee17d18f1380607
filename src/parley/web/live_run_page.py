"""The page of a run: its result, and how it goes on while it is played."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from parley.report.run_page import describe_heading
from parley.web.app import run_of, site_of
from parley.web.following import mark_of
from parley.web.live_run import read_live
from parley.web.run_renderer import RunRenderer
from parley.web.run_result import find_result

PATIENCE = 0.4  # seconds that a page waits for the result of a run that has ended


def show_run(request: Request) -> Response:
    """The run as it is now."""
    site, ref = site_of(request), run_of(request)
    with site.store.read(ref) as reader:
        live = read_live(reader)
    find_result(site, live.info, live.counts)  # starts the computation
    site.results.wait_until_idle(ref.location, PATIENCE)
    drawn = RunRenderer(site).render_live(live)
    return site.page(
        "run.html",
        ref=ref,
        heading=describe_heading(live.info),
        level=1,
        parts=drawn.parts,
        marks={name: mark_of(html) for name, html in drawn.parts.items()},
        follows=not drawn.is_final,
        runs=live.info.state == "running",
    )


async def follow_run(request: Request) -> Response:
    """Events with the parts of the page that change."""
    site, ref = site_of(request), run_of(request)
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    if site.live.is_full:
        told = "Too many pages follow runs on this server.\n"
        return PlainTextResponse(told, 503, {"retry-after": "10"})
    return StreamingResponse(site.live.stream(ref), media_type="text/event-stream")


ROUTES = [Route("/run/{id}", show_run), Route("/run/{id}/events", follow_run)]
