"""Sections of a report, and comparisons of several runs that tasks bring."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from parley.providers._secrets import covered, secrets
from parley.results.types import Figure
from parley.store import RunRef
from parley.tables import Table

Clean = Callable[[str], str]


class Section(NamedTuple):
    """A title, what to know before reading, figures and tables."""

    title: str
    tables: Sequence[Table]
    words: str = ""
    figures: Sequence[Figure] = ()


@dataclass(frozen=True)
class ReportOptions:
    """What may be asked of a comparison of several runs."""

    scores: str | Path | None = None  # a file with figures from elsewhere
    reference: Sequence[str] = ()  # models that are trusted
    without: Sequence[str] = ()  # models that correlations are also given without
    controls: Mapping[str, str] = field(default_factory=dict)  # a suspect's control
    newest: bool = False  # of runs that measure one model otherwise, the newest counts

    @property
    def given(self) -> bool:
        """Whether anything was asked that only a comparison can answer."""
        return bool(self.scores or self.reference or self.without or self.controls)


class Compared(Protocol):
    """Several runs taken together."""

    @property
    def data(self) -> dict[str, Any]:
        """All of it, in the form that `--json` prints."""

    def sections(self) -> Iterator[Section]: ...

    def table(self) -> Table:
        """Every number in a row of its own, unrounded."""


@dataclass(frozen=True)
class Comparison:
    """What a task can say of several runs together, also of runs of other tasks.

    A task that is a folder names its comparisons in `COMPARISONS` of its module `report`.
    """

    name: str
    tasks: tuple[str, ...]  # whose runs it takes
    compare: Callable[[Sequence[RunRef], ReportOptions], Compared]


def secret_cover() -> Clean:
    """What takes the secrets out of a text, before it is escaped."""
    known = secrets()
    return lambda text: covered(text, known)


def clean_table(table: Table, clean: Clean) -> Table:
    """A table without any secret in it."""
    rows = [[clean(cell) for cell in row] for row in table.rows]
    header = [clean(cell) for cell in table.header]
    return replace(table, header=header, rows=rows, note=clean(table.note))


def clean_data(value: Any, clean: Clean) -> Any:
    """Plain data without any secret in it."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(name): clean_data(each, clean) for name, each in value.items()}
    return [clean_data(each, clean) for each in value] if isinstance(value, list) else value
