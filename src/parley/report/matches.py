"""The section of a page with the matches that are worth reading, folded."""

from __future__ import annotations

from markupsafe import Markup

from parley.report.html import render
from parley.report.looks import Looks
from parley.report.notable import LONGEST, MatchSelection
from parley.report.text_room import TextRoom
from parley.results.transcript import READ_BEFORE


def draw_matches(selection: MatchSelection, run: str, anchor: str, looks: Looks) -> Markup:
    """The matches that are shown, and which are not. Nothing of a text is folded, so that a page
    cannot grow with it: what is too long is left out."""
    room = TextRoom(0, LONGEST)
    facts = {"selection": selection, "run": run, "anchor": anchor, "room": room}
    return render("notable_matches.html", looks, read_before=READ_BEFORE, **facts)
