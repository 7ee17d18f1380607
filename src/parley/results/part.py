"""A part of a result: one analysis, with its tables, its rows for machines, and its figures.

A general part is a file in `results/parts`. A task brings its own: `parts = (…)` in the class of a
task that is one file, or `PARTS` in the `analysis` module of one that is a folder.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, get_origin

from parley.errors import TaskError, describe_exception
from parley.results.types import Figure, ScoreRow, as_json, json_schema
from parley.statistics.estimates import Rank
from parley.statistics.intervals import ALPHA
from parley.tables import Table

if TYPE_CHECKING:
    from parley.results.scores import RunScores
    from parley.rules.task import Task
    from parley.store.types import RunInfo

S = TypeVar("S")  # what a part is computed from
D = TypeVar("D")  # what it has found
SectionName: TypeAlias = Literal["result", "task", "fairness", "judges", "cost"]
Rows: TypeAlias = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Style:
    """What tables and figures need besides their data."""

    level: str = "95%"  # of intervals
    digits: Mapping[str, int] | None = None  # by metric
    sequential: bool = False  # the run used sequential stopping
    race: bool = False
    exact: bool = False  # scores are exact for these prompts and have no interval
    these_items: bool = False  # scores are about exactly these items, not about others like them
    task: str = ""
    leading: Mapping[str, str] = field(default_factory=dict)  # by role: the metric it is ranked by
    lower_is_better: frozenset[str] = frozenset()  # metrics
    judged: frozenset[str] = frozenset()  # metrics scored by judges
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # by metric
    ranks: Sequence[Rank] = ()
    scores: Sequence[ScoreRow] = ()  # the main table, for figures with the same order of models

    def digits_of(self, metric: str) -> int:
        """The number of decimals that a metric is shown with."""
        return (self.digits or {}).get(metric, 2)

    @property
    def fixed_blocks_note(self) -> str:
        """A caution for intervals that assume a fixed number of blocks, in a run with sequential
        stopping."""
        said = (
            "; these intervals ignore that this run stopped depending on its scores "
            "(sequential stopping), so they may be too narrow"
        )
        return said if self.sequential else ""


def style_of(run: RunScores, ranks: Sequence[Rank] = (), scores: Sequence[ScoreRow] = ()) -> Style:
    """How tables and figures of a run are drawn."""
    stop, metrics = run.config.stop, run.metrics.values()
    return Style(
        level=f"{100 * (1 - (stop.alpha if stop else ALPHA)):g}%",
        digits={metric.name: metric.digits for metric in metrics},
        sequential=stop is not None,
        race=stop is not None and run.config.plan == "race",
        these_items=stop is not None and stop.target == "these_items",
        task=run.identity["task"],
        leading={role: name for role in run.roles if (name := run.ranking_metric(role))},
        lower_is_better=frozenset(each.name for each in metrics if each.better == "lower"),
        judged=frozenset(each.name for each in metrics if each.judged),
        bounds=run.bounds,
        ranks=ranks,
        scores=scores,
        exact=run.is_exact,
    )


def dataclass_rows(found: Any) -> Rows:
    """The rows of a part made of dataclasses: their fields are the columns."""
    return [as_json(each) for each in (found if isinstance(found, tuple) else (found,))]


def no_rows(found: Any) -> Rows:
    """The rows of a part that has none."""
    return ()


def no_figures(found: Any, style: Style) -> Sequence[Figure]:
    """The figures of a part that has none."""
    return ()


def no_words(found: Any, style: Style) -> str:
    """The introduction of a part that has none."""
    return ""


def applies_always(info: RunInfo) -> bool:
    """For a part that every run may have."""
    return True


@dataclass(frozen=True)
class Part(Generic[S, D]):
    """An analysis of a run.

    `compute` gets a `RunScores`. It returns None, or an empty tuple, if the run has no data for the
    part; `absent` says why. `data` makes of what it returned what JSON has, and `result` is the
    type of that: a dataclass, or `tuple[Row, …]` of them, with plain values only.
    """

    name: str  # --part NAME, and the anchor on a page
    title: str
    result: Any
    compute: Callable[[S], D | None]
    tables: Callable[[D, Style], Sequence[Table]]
    rows: Callable[[D], Rows] = dataclass_rows
    figures: Callable[[D, Style], Sequence[Figure]] = no_figures
    words: Callable[[D, Style], str] = no_words  # before the figures and tables
    data: Callable[[D], Any] = as_json
    applies: Callable[[RunInfo], bool] = applies_always  # from configuration and identity alone
    absent: str = "not applicable: this run has no data for this part of the result"
    section: SectionName = "task"
    # on a page: how many tables are not folded where there is no figure, and whether the part is
    # left out there without a figure, because other parts say the same
    open_tables: int | None = 1  # None: all
    needs_figure: bool = False
    key: str = ""  # in the JSON of a result, if it differs from the name
    spread: bool = False  # its fields are keys of the result themselves

    def __post_init__(self) -> None:
        if not self.name.replace("_", "").isalnum():
            raise TaskError(
                f"the name of a `Part` may contain only letters, digits and _, not {self.name!r}"
            )
        json_schema(self.result)  # a type that cannot be published fails here

    @property
    def is_sequence(self) -> bool:
        """Whether the result is a sequence of rows."""
        return get_origin(self.result) is tuple

    def publish(self, found: D | None) -> Any:
        """What JSON has of this part."""
        return self.data(found) if found else [] if self.is_sequence else None

    def keys(self, found: D | None) -> dict[str, Any]:
        """The same by its keys."""
        value: dict[str, Any] = self.publish(found)
        return value if self.spread else {self.json_key: value}

    @property
    def json_key(self) -> str:
        return self.key or self.name


RunPart: TypeAlias = "Part[RunScores, Any]"


@cache
def general_parts() -> tuple[RunPart, ...]:
    """The parts that any run may have: those of all files in `results/parts`."""
    package = import_module("parley.results.parts")
    modules = [
        import_module(f"{package.__name__}.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
    ]
    return check_unique_names(part for module in modules for part in getattr(module, "PARTS", ()))


def parts_of_task(task: type[Task] | None) -> tuple[RunPart, ...]:
    """The parts that a task and the classes it inherits from bring."""
    found = [part for kind in (task.__mro__ if task else ()) for part in declared_parts(kind)]
    return check_unique_names(dict.fromkeys(found))


def check_parts(task: type[Task]) -> None:
    """Refuse parts with duplicate names, or with the name of a general part. This is checked before
    the task is played, not afterwards."""
    try:
        own = parts_of_task(task)
    except TaskError as wrong:
        raise TaskError(f"{task.name}: {wrong}") from wrong
    except Exception as wrong:
        raise TaskError(
            f"{task.name}: this task's own result parts cannot be loaded: "
            f"{describe_exception(wrong)}"
        ) from wrong
    for part in own:
        if part.name in {each.name for each in general_parts()}:
            raise TaskError(
                f"{task.name}: the task's part `{part.name}` has the same name as a built-in "
                "part: rename the task's part"
            )


def usable_parts(task: type[Task]) -> tuple[RunPart, ...]:
    """The parts of a task; none if they cannot be loaded."""
    try:
        return parts_of_task(task)
    except Exception:  # foreign code; check_parts reports the error when the task is played
        return ()


def declared_parts(kind: type) -> Sequence[RunPart]:
    """The parts that a class declares: in itself, or in the `analysis` module of its package."""
    if "parts" in vars(kind):
        given = vars(kind)["parts"]
        if isinstance(given, str):  # "package.module:PARTS", loaded when a result is computed
            module, _, name = given.partition(":")
            given = getattr(import_module(module), name)
        found: tuple[RunPart, ...] = tuple(given)
        if wrong := [each for each in found if not isinstance(each, Part)]:
            raise TaskError(
                f"{kind.__name__}.parts must contain parley.Part objects, not {wrong[0]!r}"
            )
        return found
    analysis = module_beside_rule(kind, "analysis")
    return () if analysis is None else tuple(analysis.PARTS)


def module_beside_rule(kind: type, name: str) -> ModuleType | None:
    """A module of a task's folder, by its name; None if there is no folder or no such module."""
    package, _, module = kind.__module__.rpartition(".")
    if module != "rule" or not package or find_spec(f"{package}.{name}") is None:
        return None
    return import_module(f"{package}.{name}")


P = TypeVar("P", bound="Part[Any, Any]")


def check_unique_names(parts: Iterable[P]) -> tuple[P, ...]:
    """Parts, each under a name of its own."""
    found: dict[str, P] = {}
    for part in parts:
        if found.setdefault(part.name, part) is not part:
            raise TaskError(f"the task has two parts named `{part.name}`: rename one of them")
    return tuple(found.values())


def qualified_name(part: RunPart, task: str) -> str:
    """The name of a task's part in the JSON of a result."""
    return f"{task}.{part.name}"


def make_rows_table(rows: Rows) -> Table:
    """Rows as a table for CSV, unrounded."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [["" if row.get(name) is None else str(row[name]) for name in names] for row in rows]
    return Table(names, cells)
