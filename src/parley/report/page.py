"""One page that holds everything: no script, no request to anywhere, every word escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from parley import __version__
from parley.report.html import make_cleaner, read_style
from parley.report.looks import choose_looks
from parley.report.notable import ROOM
from parley.report.page_options import PageOptions
from parley.report.people import draw_people
from parley.report.run_page import (
    draw_lead,
    draw_part,
    draw_run,
    draw_task_words,
    has_content,
    list_chips,
    name_task,
    title_run,
)
from parley.report.svg import Clean
from parley.results.compared_runs import ComparisonResult
from parley.results.result import RunResult
from parley.tables import plural

MOST_LISTED = 12  # runs whose findings stand on the first screen
LARGEST = 1_500_000  # bytes of a page


def make_page(
    compared: Sequence[ComparisonResult], results: Sequence[RunResult], options: PageOptions
) -> str:
    """The comparisons, if there are any, then every run by itself."""
    for result in results:
        result.compute()  # all parts from one reading of the file
    options = replace(options, room=ROOM // max(1, len(results)))
    # all parts of single runs, as far as there is room for them
    for whole, bounded in (
        (True, options),
        (True, replace(options, room=0)),
        (False, options),
    ):
        text = page_text(compared, results, whole, bounded)
        if len(text.encode()) < LARGEST:
            return text
    return page_text(compared, results, False, options, is_too_large=True)


def page_text(
    compared: Sequence[ComparisonResult],
    results: Sequence[RunResult],
    whole: bool,
    options: PageOptions,
    is_too_large: bool = False,
) -> str:
    """The page, with all parts of every run or with its main result only."""
    clean = make_cleaner()
    alone, looks = len(results) == 1, choose_looks(results)
    several = [found for found in compared if not found.is_single]
    first = len(several)  # the anchors of runs follow those of comparisons
    compared_text = "".join(
        draw_part(found, part, f"s{at}", looks, clean)
        for at, found in enumerate(several)
        for part in found.page_parts
    )
    own = {found.runs.refs[0]: found for found in compared if found.is_single}
    tasks = list(dict.fromkeys(result.head.run.task for result in results))
    title = escape(clean(", ".join(map(name_task, tasks))))

    def draw_own(result: RunResult, at: int) -> str:
        """What a comparison found in a run alone stands with the run."""
        if (found := own.get(result.ref)) is None:
            return ""
        parts = found.page_parts
        return "".join(draw_part(found, part, f"s{at}-own", looks, clean) for part in parts)

    if alone:  # begins with what was found in this run
        text = draw_own(results[0], 0)
        body = draw_run(results[0], 0, clean, whole, 1, options, looks=looks, compared=text)
    else:
        runs_text = "".join(
            draw_run(
                result,
                at,
                clean,
                whole,
                2,
                options,
                looks=looks,
                compared=draw_own(result, at),
            )
            for at, result in enumerate(results, first)
        )
        words = "".join(draw_task_words(task, clean) for task in tasks)
        heading = f'<p class="eyebrow">{plural(len(results), "run")}</p><h1>{title}</h1>{words}'
        findings = draw_findings(results, first, options, clean)
        contents = draw_contents(several, results, clean)
        refs = {result.head.run.id: result.ref for result in results}
        people = draw_people(refs, "people", clean)
        body = heading + findings + contents + compared_text + people + runs_text
    closed = "default-src 'none'; style-src 'unsafe-inline'"
    ids = ", ".join(result.head.run.id for result in results)
    foot = f"Made by Parley {__version__} from {ids}. One file, no script, no request."
    if is_too_large:
        size = f"{LARGEST / 1e6:g} MB"
        foot += f" This page is larger than {size}: report on fewer runs to make it smaller."
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="generator" content="Parley {__version__}">'
        f'<meta http-equiv="Content-Security-Policy" content="{closed}">'
        f"<title>Parley: {title}</title>"
        f"<style>{read_style()}</style></head>"
        f"<body><main>{body}</main><footer><p>{escape(clean(foot))}</p></footer></body></html>\n"
    )


def draw_findings(
    results: Sequence[RunResult], first: int, options: PageOptions, clean: Clean
) -> str:
    """The first screen of a page with several runs: what each run found, and how sure it is."""
    items = []
    for at, result in enumerate(results[:MOST_LISTED], first):
        result.compute()
        chips = "".join(
            f"<li>{chip}</li>" for chip in list_chips(result, options.audit_of(result.ref), at)
        )
        link = f'<a href="#s{at}">{escape(clean(name_run(result)))}</a>'
        cautions = len(result.cautions())
        if cautions:
            said = plural(cautions, "caution")
            chips += f'<li><a class="chip warn" href="#s{at}">! {said}</a></li>'
        items.append(
            f'<div class="finding"><p class="eyebrow">{link}</p>'
            f'{draw_lead(result, clean)}<ul class="facts">{chips}</ul></div>'
        )
    left = len(results) - MOST_LISTED
    more = f'<p class="note">{plural(left, "more run")} below.</p>' if left > 0 else ""
    return f'<section class="card"><h2>What was found</h2>{"".join(items)}{more}</section>'


def draw_contents(
    several: Sequence[ComparisonResult], results: Sequence[RunResult], clean: Clean
) -> str:
    """Links to the sections of a page with several runs."""
    titles = {
        f"s{at}-{part.name}": part.title
        for at, found in enumerate(several)
        for part in found.page_parts
        if has_content(found, part)
    }
    titles |= {f"s{at}": name_run(result) for at, result in enumerate(results, len(several))}
    links = "".join(
        f'<li><a href="#{escape(anchor)}">{escape(clean(title))}</a></li>'
        for anchor, title in titles.items()
    )
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>'


def name_run(result: RunResult) -> str:
    """A run as a heading names it."""
    run = result.head.run
    return f"Run {run.id}: {title_run(run.task, run.name)}, {run.state}"
