"""The result of a run on its page: drawn as the report draws it, in the background."""

from __future__ import annotations

import time
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from parley.audit.for_report import audit_for_report
from parley.config.prices import PriceList
from parley.config.task_catalogue import task_of_run
from parley.report.looks import Looks
from parley.report.page_options import PageOptions
from parley.report.run_page import (
    draw_cautions,
    draw_comparison,
    draw_lead,
    draw_result,
    draw_run,
)
from parley.report.sections import draw_each_figure
from parley.report.svg import Clean
from parley.results.parts.stability import StabilityResult, progress_figures
from parley.results.result import REMARKS, RunResult
from parley.rules.task import Task
from parley.store import ENDED, RunInfo, RunRef, read_run
from parley.tables import plural

if TYPE_CHECKING:
    from parley.web.app import Site

# while a run is played, its result is computed again after this many seconds, and after this many
# times the time that it took
PAUSE, REST = 2.0, 10


@dataclass(frozen=True)
class ShownResult:
    """The result of a run as HTML, and whether it is that of the run as it is now."""

    html: str
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
        draw = draw_so_far if runs else draw_ended
        site.results.start(ref.location, stamp, lambda: draw(ref, site.clean))
    if last is None:
        said = f"Parley computes the result of {plural(done, 'match', 'matches')}."
        return ShownResult(f'<p class="lead">{said}</p>', False)
    html = last.value or ""
    if last.fault:
        why = f"The result could not be computed: {last.fault}"
        html = f'<p class="lead"><bdi>{escape(site.clean(why))}</bdi></p>'
    return ShownResult(html, is_current)


def draw_ended(ref: RunRef, clean: Clean) -> str:
    """The whole result of a run that is not played now, as the report has it."""
    result, task = read_result(ref)
    audits = {ref: audit_for_report(ref, task)}
    return draw_run(result, 0, clean, True, 1, PageOptions(audits), heading=False)


def draw_so_far(ref: RunRef, clean: Clean) -> str:
    """The main result of a run that is being played. It does not say how to resume the run."""
    result, _ = read_result(ref, reasoned=False)
    result.compute([*REMARKS, "pairs"])
    with read_run(ref) as reader:
        looks = Looks.of(reader.info.config.contestants)
    parts = [draw_lead(result, clean), draw_cautions(result, clean)]
    parts.append(draw_half_widths(result.part("stability"), looks, clean))
    parts += [draw_result(result, looks, clean), draw_comparison(result, looks, clean)]
    return f"<article>{''.join(parts)}</article>"


def read_result(ref: RunRef, reasoned: bool = True) -> tuple[RunResult, type[Task] | None]:
    """The result of a run, and its task if that is installed."""
    with read_run(ref) as reader:
        task = task_of_run(reader.info)
    return RunResult(ref, reasoned=reasoned, look_up=PriceList().find, task=task), task


def draw_half_widths(found: StabilityResult | None, looks: Looks, clean: Clean) -> str:
    """How far the intervals of a sequential run are from the precision that ends it."""
    figures = progress_figures(found) if found else []
    if found is None or not figures:
        return ""
    words = "Intervals are valid at every look, so watching does not distort them. "
    words += (
        "The race goes on until every pair of models is decided."
        if found.plan == "race"
        else "The run goes on until every half-width is at most its target."
    )
    return (
        f'<section class="card"><h2>Precision so far</h2><p class="why">{escape(words)}</p>'
        f"{draw_each_figure(figures, clean, looks)}</section>"
    )
