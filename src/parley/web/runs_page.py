"""The first page: the runs in the store, newest first, and a form to find some of them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from parley.errors import UsageError
from parley.money import format_usd
from parley.report.model_signs import ModelSigns
from parley.report.run_page import title_run
from parley.results.match_notes import Mark
from parley.results.parts.results import draw_points
from parley.results.types import Intervals
from parley.web.app import Site, site_of
from parley.web.run_catalogue import STATES, ListedRun, RunSummary
from parley.web.run_renderer import CHIPS

LONGEST_QUERY = 200  # characters
PATIENCE = 0.3  # seconds that a page waits for summaries
MOST_DRAWN = 5  # intervals of a run


@dataclass(frozen=True)
class RunLine:
    """A run as the template shows it."""

    run: ListedRun
    title: str
    state: Mark
    summary: RunSummary | None  # None: being computed
    fault: str  # why there is no summary
    figure: Intervals | None  # the best models with their intervals
    signs: ModelSigns
    cost: str
    day: str
    models: tuple[str, ...]  # in the order of the intervals, others after them


def show_runs(request: Request) -> Response:
    """A page of runs."""
    site = site_of(request)
    query = request.query_params.get("q", "").strip()
    state = request.query_params.get("state", "")
    if len(query) > LONGEST_QUERY:
        raise UsageError(f"the search must have at most {LONGEST_QUERY} characters")
    if state and state not in STATES:
        raise UsageError(f"the state must be {', '.join(STATES)} or empty, not {state[:40]!r}")
    after = request.query_params.get("after", "")
    found = site.catalogue.search(query.casefold().split(), state, after)
    lines = make_lines(site, found.runs)
    kept = {name: value for name, value in (("q", query), ("state", state)) if value}
    return site.page(
        "runs.html",
        lines=lines,
        unreadable=site.catalogue.unreadable(),
        count=len(site.store.refs()),
        location=site.store.name,
        query=query,
        state=state,
        states=STATES,
        begins=not after,
        looked_at=found.looked_at,
        next="/?" + urlencode({**kept, "after": found.next}) if found.next else "",
    )


def make_lines(site: Site, runs: tuple[ListedRun, ...]) -> list[RunLine]:
    """The runs with their summaries, as far as these are known soon."""
    stamps = [site.catalogue.start_summary(run.ref) for run in reversed(runs)][::-1]
    ends = time.monotonic() + PATIENCE
    lines = []
    for run, stamp in zip(runs, stamps, strict=True):
        rest = max(0.0, ends - time.monotonic())
        found = site.catalogue.summaries.wait(run.ref.location, stamp, rest)
        summary = found.value if found else None
        scores = (summary.scores or ())[:MOST_DRAWN] if summary else ()
        cost = "" if summary is None else str(summary.cost)
        if summary is not None and run.budget_usd is not None:
            cost += f" of {format_usd(run.budget_usd)}"
        lines.append(
            RunLine(
                run,
                title_run(run.task, run.name),
                CHIPS.get(run.state, Mark(run.state)),
                summary,
                found.fault if found else "",
                draw_points(scores, "The best models") if scores else None,
                ModelSigns.of(run.contestants),
                cost,
                time.strftime("%Y-%m-%d", time.gmtime(run.created)),
                order_models(run, summary),
            )
        )
    return lines


def order_models(run: ListedRun, summary: RunSummary | None) -> tuple[str, ...]:
    """The contestants, the best first as far as this is known."""
    ranked = [score.row.alias for score in (summary.scores or ())] if summary else []
    return tuple(dict.fromkeys([*ranked, *run.contestants]))


ROUTES = [Route("/", show_runs)]
