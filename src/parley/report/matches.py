"""The section of a page with the matches that are shown, folded."""

from __future__ import annotations

from html import escape

from parley.report.fenced_code import split_fences
from parley.report.looks import Looks, name_model
from parley.report.notable import MatchSelection, NotableMatch, Spoken, describe_cut
from parley.report.sections import NEGATIVE, draw_table
from parley.report.svg import Clean
from parley.tables import plural


def draw_matches(
    selection: MatchSelection, run: str, anchor: str, looks: Looks, clean: Clean
) -> str:
    """The matches that are shown, and which are not."""
    if not selection.all:
        return ""
    folded = "".join(
        draw_match(match, f"{anchor}-{match.row.number}", looks, clean)
        for match in selection.matches
    )
    said = describe_left_out_matches(selection, run)
    return (
        f'<section class="card" id="{escape(anchor)}"><h2>Matches worth reading</h2>{folded}'
        f'<p class="note">{escape(clean(said))}</p></section>'
    )


def describe_left_out_matches(selection: MatchSelection, run: str) -> str:
    """How many matches are shown, which are left out, and where to find them."""
    shown, every = len(selection.matches), plural(selection.all, "match", "matches")
    words = f"{shown:,} of {every} {'is' if shown == 1 else 'are'} shown here."
    if shown == selection.all:
        words = "All matches are shown here." if shown > 1 else ""
    if selection.aborted:
        left = plural(selection.aborted, "aborted match is", "aborted matches are")
        words += f" {left} left out."
    if selection.too_large:
        left = plural(selection.too_large, "more match", "more matches")
        words += f" There is no room for {left}: the page would be too large."
    return f"{words} parley show {run} --matches lists all matches, parley show {run} N shows one."


def draw_match(match: NotableMatch, anchor: str, looks: Looks, clean: Clean) -> str:
    """A match: its messages by round, then its scores."""
    title = f"Match {match.row.number}"
    if match.reason:
        title += f", {match.reason}"
    if match.scores:
        title += f" ({match.scores})"
    parts, number = list[str](), 0
    for spoken in match.messages:
        if spoken.round != number:
            number = spoken.round
            parts.append(f"<h3>Round {number}</h3>")
        parts.append(draw_message(spoken, looks, clean))
    body = "".join(parts) or '<p class="note">No reply is on record.</p>'
    if match.table.rows:
        body += "<h3>Scores</h3>" + draw_table(match.table, f"Scores of {title}", clean)
    summary = f"<bdi>{escape(NEGATIVE.sub('−', clean(title)))}</bdi>"
    return f'<details id="{escape(anchor)}"><summary>{summary}</summary>{body}</details>'


def draw_message(spoken: Spoken, looks: Looks, clean: Clean) -> str:
    """One message, and what was wrong with it."""
    text = draw_text(clean(spoken.text)) + escape(describe_cut(spoken))
    kind, who = "say", f"{escape(clean(spoken.seat))}<br>"
    who += name_model(spoken.alias, spoken.alias, clean, looks)
    if not spoken.seat:
        kind, who = "say ref", f"Referee to {escape(clean(spoken.to))}"
    faults = "".join(f'<p class="note">{escape(clean(fault))}</p>' for fault in spoken.faults)
    return (
        f'<div class="{kind}"><div class="by">{who}</div><div class="tx">{text}{faults}</div></div>'
    )


def draw_text(text: str) -> str:
    """What was said, with fenced code in blocks of its own."""
    return "".join(
        f"<pre><bdi>{escape(part)}</bdi></pre>" if is_code else f"<bdi>{escape(part)}</bdi>"
        for is_code, part in split_fences(text)
        if part.strip()
    )
