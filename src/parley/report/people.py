"""What people said about the conversations of a run, on its page."""

from __future__ import annotations

from html import escape

from parley.errors import StoreError
from parley.report.figures import Clean
from parley.report.sections import draw_table
from parley.results.human_votes import read_human_votes
from parley.store import RunInfo


def draw_people(info: RunInfo, anchor: str, clean: Clean) -> str:
    """Who people preferred, and whether they agree with the scores; empty if nobody has voted."""
    try:
        found = read_human_votes({info.id: info.ref})
    except StoreError as wrong:
        words, table = f"The votes of people are left out: {wrong}", ""
    else:
        if found is None:
            return ""
        words, table = found.describe(), draw_table(found.table(), "What people said", clean)
    return (
        f'<section class="card" id="{anchor}"><h2>What people said</h2>'
        f'<p class="why"><bdi>{escape(clean(words))}</bdi></p>{table}</section>'
    )
