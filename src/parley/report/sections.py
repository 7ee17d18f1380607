"""Sections of a report, and comparisons of several runs that tasks define."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from parley.providers._secrets import known_secrets, mask_secrets
from parley.report.figures import Clean, draw, scrollable
from parley.report.looks import Looks
from parley.results.types import Figure, Lines, Scatter
from parley.store import RunRef
from parley.tables import Table, mark_code, show_hidden


class Section(NamedTuple):
    """A section with a title, an introduction, figures, tables and subsections."""

    title: str
    tables: Sequence[Table]
    words: str = ""
    figures: Sequence[Figure] = ()
    parts: Sequence[Section] = ()
    anchor: str = ""  # for links, within the enclosing section
    of_several: bool = False  # the page of a single run shows the same elsewhere


@dataclass(frozen=True)
class ReportOptions:
    """Options of a comparison of several runs."""

    scores: str | Path | None = None  # a file with external scores
    reference: Sequence[str] = ()  # models that are trusted
    without: Sequence[str] = ()  # correlations are also computed without these models
    controls: Mapping[str, str] = field(default_factory=dict)  # a suspect's control
    newest: bool = False  # if runs of one model have different settings, use the newest

    @property
    def given(self) -> bool:
        """Whether an option was given that only a comparison can use."""
        return bool(self.scores or self.reference or self.without or self.controls)


@dataclass(frozen=True)
class ComparisonResult:
    """A comparison of several runs, in the three forms of a report."""

    data: dict[str, Any]  # the whole comparison, as `--json` prints it
    sections: Sequence[Section]
    table: Table  # one row per number, unrounded
    refs: Sequence[RunRef] = ()  # the runs that were compared


@dataclass(frozen=True)
class RunComparison:
    """A comparison of several runs that a task defines, also of runs of other tasks.

    A task that is a folder names its comparisons in `COMPARISONS` of its module `report`.
    """

    tasks: tuple[str, ...]  # whose runs it takes
    compare: Callable[[Sequence[RunRef], ReportOptions], ComparisonResult]


def make_secret_filter() -> Clean:
    """A function that masks secrets in a text, before it is escaped."""
    known = known_secrets()
    return lambda text: mask_secrets(text, known)


def make_cleaner() -> Clean:
    """A function that masks secrets in a text and shows its hidden characters, for pages."""
    without_secrets = make_secret_filter()
    return lambda text: show_hidden(without_secrets(text))


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


# Sections as HTML.


def draw_section(
    section: Section, anchor: str, clean: Clean, looks: Looks | None = None, level: int = 2
) -> str:
    """A section: words, figures, tables, and the sections in it. The tables are folded where there
    is a figure."""
    figures = draw_each_figure(section.figures, clean, looks)
    figures += draw_legends(section.figures, clean)
    words = f'<p class="why">{mark_code(escape(clean(section.words)))}</p>' if section.words else ""
    tables = "".join(draw_table(table, section.title, clean) for table in section.tables)
    if figures and tables:
        tables = f"<details><summary>The same as a table</summary>{tables}</details>"
    title = escape(clean(section.title))
    parts = "".join(
        draw_section(part, f"{anchor}-{part.anchor}", clean, looks, level + 1)
        for part in section.parts
    )
    body = f"<h{level}>{title}</h{level}>{words}{figures}{tables}{parts}"
    card = ' class="card"' if level == 2 else ""
    return f'<section{card} id="{escape(anchor)}">{body}</section>'


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
# the sign before a number; hyphens inside words and dates stay
NEGATIVE = re.compile(r"(?<![\w.])-(?=\d)")
