"""What people said about the conversations of a run, on its page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from parley.errors import StoreError
from parley.report.sections import draw_table
from parley.report.svg import Clean
from parley.results.human_votes import read_human_votes
from parley.store import RunRef


def draw_people(refs: Mapping[str, RunRef], anchor: str, clean: Clean) -> str:
    """Who people preferred in a run, or in pairs that were drawn from several runs, and whether
    they agree with the scores; empty if nobody has voted. The runs are given by their ids."""
    joint = len(refs) > 1
    title = "What people said about pairs from several runs" if joint else "What people said"
    try:
        found = read_human_votes(refs, joint)
    except StoreError as wrong:
        words, table = f"The votes of people are left out: {wrong}", ""
    else:
        if found is None:
            return ""
        words, table = found.describe(), draw_table(found.table(), title, clean)
    return (
        f'<section class="card" id="{anchor}"><h2>{title}</h2>'
        f'<p class="why"><bdi>{escape(clean(words))}</bdi></p>{table}</section>'
    )
