"""The result of a run on its page: drawn as the report draws it, in the background."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from parley.audit.for_report import audit_for_report
from parley.config.task_catalogue import task_of_run
from parley.report.html import render
from parley.report.model_signs import ModelSigns
from parley.report.page_options import PageOptions
from parley.report.run_page import describe_main, render_run
from parley.results.parts.stability import progress_figures
from parley.results.remarks import REMARKS
from parley.results.result import RunResult
from parley.rules.task import Task
from parley.store import read_run
from parley.store.types import ENDED, RunInfo, RunRef
from parley.tables import plural
from parley.web.known_prices import known_price

if TYPE_CHECKING:
    from parley.web.app import Site

# while a run is played, its result is computed again after this many seconds, and after this many
# times the time that it took
PAUSE, REST = 2.0, 10


@dataclass(frozen=True)
class ShownResult:
    """The result of a run as HTML, and whether it is that of the run as it is now."""

    html: Markup
    is_current: bool


def find_result(site: Site, info: RunInfo, counts: dict[str, int]) -> ShownResult:
    """The result that was computed last; a newer one is computed if it is due."""
    ref, runs = info.ref, info.state == "running"
    done = sum(counts.get(state, 0) for state in ENDED)
    # while a run is played, only matches that have ended change its result
    stamp = f"running {done}" if runs else f"{info.state} {site.store.stamp(ref)}"
    last = site.results.last(ref.location)
    is_current = last is not None and last.stamp == stamp
    due = last is None or not runs or time.monotonic() - last.at > max(PAUSE, REST * last.seconds)
    if not is_current and due:
        render_result = render_so_far if runs else render_ended
        site.results.start(ref.location, stamp, lambda: render_result(ref))
    if last is None:
        said = f"Parley computes the result of {plural(done, 'match', 'matches')}."
        return ShownResult(render("live_lead.html", said=said), False)
    if last.value is None:
        why = f"The result could not be computed: {last.fault}"
        return ShownResult(render("live_lead.html", said=why), is_current)
    return ShownResult(last.value, is_current)


def render_ended(ref: RunRef) -> Markup:
    """The whole result of a run that is not played now, as the report has it."""
    result, task = read_result(ref)
    return render_run(result, PageOptions({ref: audit_for_report(ref, task)}), level=0)


def render_so_far(ref: RunRef) -> Markup:
    """The main result of a run that is being played. It does not say how to resume the run."""
    result, _ = read_result(ref, reasoned=False)
    result.compute([*REMARKS, "pairs"])
    signs = ModelSigns.of(result.info.config.contestants)
    stability = result.part("stability")
    return render(
        "run_so_far.html",
        signs,
        main=describe_main(result),
        precision=progress_figures(stability) if stability else [],
        is_race=result.style.race,
    )


def read_result(ref: RunRef, reasoned: bool = True) -> tuple[RunResult, type[Task] | None]:
    """The result of a run, and its task if that is installed."""
    with read_run(ref) as reader:
        task = task_of_run(reader.info)
    return RunResult(ref, reasoned=reasoned, look_up=known_price, task=task), task
