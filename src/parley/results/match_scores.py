"""The scores of one match as a table."""

from __future__ import annotations

from parley.results.transcript import Transcript
from parley.tables import Table, format_number


def match_score_table(found: Transcript) -> Table | None:
    """The scores of a match, the best of each role first; None without scores."""
    if not found.metrics:
        return None
    units = [f"{each.name} ({each.unit})" if each.unit else each.name for each in found.metrics]
    rows = []
    for seat, scores in found.scores.items():
        mark = " (fills a seat; unscored)" if seat in found.match.unscored else ""
        values = [format_number(scores.get(each.name), each.digits) for each in found.metrics]
        rows.append([str(seat), f"{found.match.seats[seat]}{mark}", *values])
    return Table(["seat", "model", *units], rows, left=2)
