"""Several runs that are compared: parts over several runs, and what they have found.

A task that is a folder names its parts over several runs in `COMPARISONS` of its module `report`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from parley.errors import TaskError
from parley.results.part import (
    D,
    Part,
    Style,
    check_unique_names,
    make_rows_table,
    module_beside_rule,
)
from parley.results.result import RunResult
from parley.results.scores import RunScores
from parley.results.types import Figure
from parley.rules.task import Task
from parley.store.types import RunRef
from parley.tables import Table

T = TypeVar("T")


@dataclass(frozen=True)
class ComparisonOptions:
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


class ComparedRuns:
    """Runs that are compared. The `compute` of a part over several runs gets this."""

    def __init__(self, results: Sequence[RunResult], options: ComparisonOptions) -> None:
        self.results, self.options = results, options
        self._analyses: dict[Any, Any] = {}

    @property
    def refs(self) -> list[RunRef]:
        return [result.ref for result in self.results]

    def each(self) -> Iterator[RunScores]:
        """The scores of every run. A run is closed when the next one is taken."""
        for result in self.results:
            with result.open_scores() as run:
                yield run

    def once(self, analyse: Callable[[ComparedRuns], T]) -> T:
        """An analysis that several parts share: it is made for the first of them."""
        if analyse not in self._analyses:
            self._analyses[analyse] = analyse(self)
        found: T = self._analyses[analyse]
        return found


@dataclass(frozen=True)
class ComparisonPart(Part[ComparedRuns, D], Generic[D]):
    """An analysis of several runs, also of runs of other tasks."""

    open_tables: int | None = None
    takes: tuple[str, ...] = ()  # the tasks whose runs it takes
    alone: bool = True  # the page of a single run has it, because no other part shows the same

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.takes:
            raise TaskError(f"the part `{self.name}` needs `takes`, the tasks whose runs it takes")


AnyComparison: TypeAlias = ComparisonPart[Any]


def comparisons_of_task(task: type[Task]) -> tuple[AnyComparison, ...]:
    """The parts over several runs that a task and the classes it inherits from bring."""
    modules = [module_beside_rule(kind, "report") for kind in task.__mro__]
    found = [part for module in modules if module is not None for part in module.COMPARISONS]
    return check_unique_names(dict.fromkeys(found))


class ComparisonResult:
    """What parts over several runs have found. Runs that cannot be compared with these options
    raise a `UsageError`."""

    style = Style()

    def __init__(self, parts: Sequence[AnyComparison], runs: ComparedRuns) -> None:
        self.runs = runs
        self.parts = {part.name: part for part in check_unique_names(parts)}
        self._found = {part.name: part.compute(runs) for part in parts}

    @property
    def is_single(self) -> bool:
        """Whether there is only one run, so that nothing is compared."""
        return len(self.runs.results) == 1

    @property
    def page_parts(self) -> list[AnyComparison]:
        """The parts that a page has."""
        return [part for part in self.parts.values() if part.alone or not self.is_single]

    @property
    def data(self) -> dict[str, Any]:
        """Everything, as `--json` prints it."""
        found: dict[str, Any] = {}
        for part in self.parts.values():
            found |= part.keys(self._found[part.name])
        return found

    def words(self, name: str) -> str:
        """The introduction of a part."""
        found = self._found[name]
        return self.parts[name].words(found, self.style) if found else ""

    def tables(self, name: str) -> list[Table]:
        """The tables of a part; none if the runs have no data for it."""
        found = self._found[name]
        return list(self.parts[name].tables(found, self.style)) if found else []

    def figures(self, name: str) -> list[Figure]:
        """The figures of a part."""
        found = self._found[name]
        return list(self.parts[name].figures(found, self.style)) if found else []

    def rows_table(self) -> Table:
        """One row per number, unrounded: the rows of all parts."""
        rows = [
            row
            for name, part in self.parts.items()
            if self._found[name]
            for row in part.rows(self._found[name])
        ]
        return make_rows_table(rows)
