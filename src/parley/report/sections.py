"""What the sections of a report are made of: figures and tables, without secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from parley.report.figures import Clean, draw, scrollable
from parley.report.html import NEGATIVE
from parley.report.looks import Looks
from parley.results.types import Figure, Lines, Scatter
from parley.tables import Table, mark_code

__all__ = ["NEGATIVE", "clean_table", "draw_each_figure", "draw_legends", "draw_table"]


def clean_table(table: Table, clean: Clean) -> Table:
    """A table without any secret in it."""
    rows = [[clean(cell) for cell in row] for row in table.rows]
    header = [clean(cell) for cell in table.header]
    note, title = clean(table.note), clean(table.title)
    return replace(table, header=header, rows=rows, note=note, title=title)


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
    said = dict.fromkeys(
        figure.legend for figure in figures if isinstance(figure, Scatter | Lines) and figure.legend
    )
    return "".join(f'<p class="note">{mark_code(escape(clean(each)))}</p>' for each in said)


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
