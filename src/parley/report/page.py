"""One page that holds everything: no script, no request to anywhere, every word escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from markupsafe import Markup

from parley.report.html import read_style, render
from parley.report.model_signs import choose_signs
from parley.report.page_options import LARGEST, PageOptions
from parley.report.people import describe_people
from parley.report.run_page import (
    describe_task,
    list_chips,
    list_comparisons,
    name_task,
    render_run,
    title_run,
    write_lead,
)
from parley.results.compared_runs import ComparisonResult
from parley.results.match_notes import Mark
from parley.results.result import RunResult
from parley.tables import plural

MOST_LISTED = 12  # runs whose findings stand on the first screen
FRAME = 60_000  # bytes of a page besides comparisons and runs: its style, findings and links


class Finding(NamedTuple):
    """What a run found, in a few lines."""

    anchor: str
    name: str
    lead: str
    chips: Sequence[Mark]


def make_page(
    compared: Sequence[ComparisonResult], results: Sequence[RunResult], options: PageOptions
) -> str:
    """The comparisons, if there are any, then every run by itself, as far as there is room."""
    for result in results:
        result.compute()  # all parts from one reading of the file
    several = [found for found in compared if not found.is_single]
    single = {found.runs.refs[0]: found for found in compared if found.is_single}
    signs, is_alone = choose_signs(results), len(results) == 1
    compared_parts = [
        part for at, found in enumerate(several) for part in list_comparisons(found, f"s{at}")
    ]
    comparisons = [render("part.html", signs, part=part) for part in compared_parts]
    options = replace(options, signs=signs)
    anchors = [f"s{at}" for at in range(len(several), len(several) + len(results))]
    left, runs = LARGEST - FRAME - sum(len(each.encode()) for each in comparisons), list[Markup]()
    for result, anchor in zip(results, anchors, strict=True):
        own = replace(options, room=left // (len(results) - len(runs)))  # what is left, shared
        level = 1 if is_alone else 2
        runs.append(render_run(result, own, anchor, level, single.get(result.ref)))
        left -= len(runs[-1].encode())
    tasks = list(dict.fromkeys(result.head.run.task for result in results))
    links = {part.anchor: part.title for part in compared_parts}
    links |= {anchor: name_run(each) for anchor, each in zip(anchors, results, strict=True)}
    findings = [
        list_finding(result, options, anchor)
        for anchor, result in zip(anchors, results[:MOST_LISTED], strict=False)
    ]
    refs = {result.head.run.id: result.ref for result in results}
    page = render(
        "page.html",
        signs,
        style=read_style(),
        title=", ".join(map(name_task, tasks)),
        is_alone=is_alone,
        words=list(filter(None, map(describe_task, tasks))),
        findings=findings,
        links=links,
        comparisons=comparisons,
        people=None if is_alone else describe_people(refs, "people"),
        runs=runs,
        ids=list(refs),
        too_large=f"{LARGEST / 1e6:g} MB" if left < 0 else "",
    )
    return f"{page}\n"


def list_finding(result: RunResult, options: PageOptions, anchor: str) -> Finding:
    """The finding of a run, and how sure it is."""
    chips = list_chips(result, options.audit_of(result.ref))
    if cautions := len(result.cautions()):
        chips.append(Mark(f"! {plural(cautions, 'caution')}", "warn", ""))
    return Finding(anchor, name_run(result), write_lead(result), chips)


def name_run(result: RunResult) -> str:
    """A run as a heading names it."""
    run = result.head.run
    return f"Run {run.id}: {title_run(run.task, run.name)}, {run.state}"
