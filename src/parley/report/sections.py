"""What the sections of a report are made of: figures and tables, without secrets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any

from parley.report.looks import Looks
from parley.report.svg import Clean, draw
from parley.results.types import Figure
from parley.tables import Table, mark_code


def clean_table(table: Table, clean: Clean) -> Table:
    """A table without any secret in it."""
    rows = [[clean(cell) for cell in row] for row in table.rows]
    header = [clean(cell) for cell in table.header]
    note, title = clean(table.note), clean(table.title)
    return replace(table, header=header, rows=rows, note=note, title=title)


def clean_data(value: Any, clean: Clean) -> Any:
    """Plain data without any secret in it."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(name): clean_data(each, clean) for name, each in value.items()}
    return [clean_data(each, clean) for each in value] if isinstance(value, list) else value


# As HTML.


def draw_each_figure(figures: Sequence[Figure], clean: Clean, looks: Looks | None = None) -> str:
    """Figures with their titles; one whose numbers cannot be drawn is named."""
    parts = []
    for figure in figures:
        title = escape(clean(figure.title))
        try:
            drawing = draw(figure, clean, looks)
        except (TypeError, ValueError, ArithmeticError, StopIteration, IndexError) as wrong:
            reason = escape(clean(f"this figure cannot be drawn ({wrong})"))
            parts.append(f'<p class="note">{title}: {reason}</p>')
            continue
        parts.append(f"<figure><figcaption>{title}</figcaption>{drawing}</figure>")
    return "".join(parts)


def draw_legends(figures: Sequence[Figure], clean: Clean) -> str:
    """What to know to read these figures, each sentence once."""
    said = dict.fromkeys(legend for figure in figures if (legend := getattr(figure, "legend", "")))
    return "".join(f'<p class="note">{mark_code(escape(clean(each)))}</p>' for each in said)


def scrollable(body: str, name: str) -> str:
    """What may be wider than the page: it scrolls by itself, and the keyboard reaches it.

    A group, not a region: landmarks need unique names, and tables of one part share theirs.
    """
    return f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(name)}">{body}</div>'


def draw_table(table: Table, name: str, clean: Clean) -> str:
    """A table that scrolls by itself where it is wider than the page."""
    found = clean_table(table, clean)
    rows = [[NEGATIVE.sub("−", cell) for cell in row] for row in found.rows]
    text = replace(found, rows=rows).render("html")
    if not found.title:
        text = text.replace(
            "<table>", f'<table><caption class="vh">{escape(clean(name))}</caption>', 1
        )
    body = scrollable(text, found.title or clean(name))
    many = " many" if len(table.header) > FEW_COLUMNS else ""
    return f'<div class="table left{table.left}{many}">{body}</div>'


FEW_COLUMNS = 11  # tables with more columns are set smaller, and their cells may take two lines
# the sign before a number; hyphens inside words and dates stay
NEGATIVE = re.compile(r"(?<![\w.])-(?=\d)")
