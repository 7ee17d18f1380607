"""The first part of a report for a notebook: its style applies to nothing else on the page."""

from __future__ import annotations

import re
from functools import cache

from parley.report.fairness import NOT_AUDITED
from parley.report.looks import Looks
from parley.report.run_page import (
    draw_cautions,
    draw_facts,
    draw_heading,
    draw_lead,
    list_score_charts,
)
from parley.report.sections import make_cleaner
from parley.report.style import STYLE
from parley.report.style_rules import scope_style
from parley.results.result import Result
from parley.store import read_run

CONTAINER = "parley-result"
LINK = re.compile(r'<a( class="[^"]*")? href="#[^"]*">(.*?)</a>')


def draw_notebook(result: Result) -> str:
    """What was found, how sure it is, cautions, and the main result with its intervals."""
    clean = make_cleaner()
    with read_run(result.ref) as reader:
        info = reader.info
    looks = Looks.of(info.config.contestants)
    facts = draw_facts(result, info, NOT_AUDITED, 0, clean, whole=False)
    parts = [
        draw_heading(info, clean, level=3),
        draw_lead(result, clean),
        LINK.sub(r"<span\1>\2</span>", facts),  # the sections that they lead to are not here
        draw_cautions(result, clean),
        *(chart.body for chart in list_score_charts(result, looks, clean)),
    ]
    return f'<div class="{CONTAINER}"><style>{notebook_style()}</style>{"".join(parts)}</div>'


@cache
def notebook_style() -> str:
    """The style sheet of reports for one container."""
    own = f".{CONTAINER}{{padding:1rem 1.2rem;border-radius:10px;max-width:68rem}}"
    return scope_style(STYLE, f".{CONTAINER}") + own
