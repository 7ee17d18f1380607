"""Sections of a report, and comparisons of several runs that tasks define."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from parley.providers._secrets import mask_secrets, secrets_in_environment
from parley.results.types import Figure
from parley.store import RunRef
from parley.tables import Table

Clean = Callable[[str], str]


class Section(NamedTuple):
    """A section with a title, an introduction, figures, tables and subsections."""

    title: str
    tables: Sequence[Table]
    words: str = ""
    figures: Sequence[Figure] = ()
    parts: Sequence[Section] = ()
    anchor: str = ""  # for links, within the enclosing section


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


@dataclass(frozen=True)
class RunComparison:
    """A comparison of several runs that a task defines, also of runs of other tasks.

    A task that is a folder names its comparisons in `COMPARISONS` of its module `report`.
    """

    tasks: tuple[str, ...]  # whose runs it takes
    compare: Callable[[Sequence[RunRef], ReportOptions], ComparisonResult]


def make_secret_filter() -> Clean:
    """A function that masks secrets in a text, before it is escaped."""
    known = secrets_in_environment()
    return lambda text: mask_secrets(text, known)


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
