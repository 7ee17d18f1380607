"""The published form of a result: dataclasses, and the JSON schema made from them.

`parley.result/1` is what `--json` prints. Figures are data as well: the report draws them, and so
can other tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from parley.errors import TaskError
from parley.statistics.estimates import Rank

SCHEMA: Literal["parley.result/1"] = "parley.result/1"
SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


@dataclass(frozen=True)
class Share:
    """A count of cases, and their share with an interval over blocks."""

    count: int
    share: float
    low: float | None
    high: float | None
    blocks: int


@dataclass(frozen=True)
class ScoreRow:
    """One model in one role and metric."""

    alias: str
    model_requested: str
    model_served: list[str]
    role: str
    metric: str
    unit: str
    mean: float | None
    low: float | None
    high: float | None
    sd: float | None
    interval: str | None
    blocks: int
    matches: int
    missing: int
    violations: int
    signature: str
    # matches in which the task's default replaced a reply that could not be read
    defaulted: int = 0


@dataclass(frozen=True)
class Stop:
    """Why a run stopped; None while it is running."""

    status: str | None
    reason: str | None


@dataclass(frozen=True)
class MatchCounts:
    """The number of matches planned so far, ended and failed."""

    planned: int | None
    done: int
    failed: int


@dataclass(frozen=True)
class RunWorkers:
    """The workers of a shared run."""

    alive: int
    left: int
    dead: int


@dataclass(frozen=True)
class RunLimits:
    """The budget of a run."""

    usd: float | None
    calls: int | None


@dataclass(frozen=True)
class Unfinished:
    """A model with unfinished matches in a run that stopped."""

    alias: str
    matches: int
    planned: int


@dataclass(frozen=True)
class BatchAtProvider:
    """A batch whose replies are not on record. The provider bills them."""

    number: int
    alias: str
    requests: int  # without a reply on record
    # what the provider calls it; None if it is not known whether the batch was created there
    provider_id: str | None


@dataclass(frozen=True)
class RunFacts:
    """The configuration and the state of a run."""

    id: str
    name: str | None
    task: str
    params: dict[str, Any]
    models: dict[str, dict[str, Any]]
    excluded: list[str]
    plan: str
    seed: int
    sandbox: str | None
    budget: RunLimits
    state: str
    stop: Stop
    matches: MatchCounts
    parley: str
    created: str
    workers: RunWorkers | None = None  # None: one process plays, or has played


@dataclass(frozen=True)
class Seal:
    """An end of a run at which its whole record was digested, and how many matches had ended."""

    digest: str
    at: str
    state: str
    status: str | None
    matches: int


@dataclass(frozen=True)
class RunFactsInResult(RunFacts):
    """The facts of a run, the models with unfinished matches, the batches whose replies are not on
    record, and the seals of earlier ends, after which the run was opened again."""

    unfinished: list[Unfinished] = field(default_factory=list)
    open_batches: list[BatchAtProvider] = field(default_factory=list)
    earlier_seals: list[Seal] = field(default_factory=list)


@dataclass(frozen=True)
class ViolationCount:
    """Violations of a model, of one kind. A reply that failed in several attempts is one violation
    with several attempts."""

    alias: str
    kind: str
    count: int
    attempts: int


@dataclass(frozen=True)
class LeftOut:
    """Options of a model that its endpoint did not support, and the calls sent without them."""

    alias: str
    options: list[str]
    calls: int


@dataclass(frozen=True)
class Programs:
    """How many programs were run, how many of them were judged inside their own process, where they
    could forge the verdict, and how many could not be judged."""

    run: int
    inside: int
    unjudged: int


@dataclass(frozen=True)
class IdenticalRepeats:
    """For a run whose models always gave the same reply to the same prompt: how often the most
    repeated match was played, the number of blocks, the number of different blocks, and whether
    scores are exact for these prompts."""

    plays: int
    blocks: int
    different: int
    exact: bool


@dataclass(frozen=True)
class PriceRow:
    """The price of a model in USD per million tokens, for calls above a number of tokens."""

    alias: str
    model_served: str | None
    above: int
    input: float
    cached_input: float
    output: float
    written_input: float | None
    source: str
    as_of: str | None


@dataclass(frozen=True)
class ResultHead:
    """Everything in a result besides its parts."""

    run: RunFactsInResult
    digits: dict[str, int]  # by metric: how many are shown
    leading: dict[str, str]  # by role: the metric that it is ranked by
    violations: tuple[ViolationCount, ...]
    left_out: tuple[LeftOut, ...]
    ranks: tuple[Rank, ...]
    programs: Programs | None
    identical: (
        IdenticalRepeats | None
    )  # None: replies to the same prompt differed, or no prompt was repeated
    shown: str | None  # in an `evolve` run: which stage the tables show
    schema: Literal["parley.result/1"] = SCHEMA


# Figures describe the data to draw, not how to draw it. A mark whose `model` names a contestant has
# the colour and the shape of that model; without it, its label may name one. A legend says what to
# know to read a figure.


@dataclass(frozen=True)
class Point:
    """A value with its interval, under a label. `mark` stands behind the value, `detail` below the
    label; `cells` are those of the columns of the figure."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    group: str = ""
    model: str = ""
    mark: str = ""
    rank: str = ""
    detail: str = ""
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Intervals:
    """Values with their intervals, one under the other. Points with the same label and different
    groups share a row. The heading over the values is `unit`, unless there is another `heading`;
    `columns` are headings of further columns."""

    title: str
    alt: str
    unit: str
    points: tuple[Point, ...]
    digits: int | None = None  # decimals of the numbers; None: three significant digits
    heading: str = ""
    columns: tuple[str, ...] = ()
    caption: str = ""  # a sentence above the rows
    legend: str = ""
    role: str = ""  # the role whose scores these are
    kind: Literal["intervals"] = "intervals"


@dataclass(frozen=True)
class Bar:
    """One bar of several pieces, by the names of the pieces."""

    label: str
    pieces: dict[str, float]
    note: str = ""
    model: str = ""


@dataclass(frozen=True)
class Bars:
    """Stacked bars. `most`: the end of the scale, which is drawn behind every bar."""

    title: str
    alt: str
    unit: str
    bars: tuple[Bar, ...]
    most: float | None = None
    legend: str = ""
    kind: Literal["bars"] = "bars"


@dataclass(frozen=True)
class Box:
    """The distribution of some values: their median, quartiles and ends, how many there are, and
    the values themselves unless they are too many to draw."""

    label: str
    low: float
    first_quartile: float
    median: float
    third_quartile: float
    high: float
    n: int
    dots: tuple[float, ...] = ()
    model: str = ""


@dataclass(frozen=True)
class Boxes:
    """Distributions, one under the other."""

    title: str
    alt: str
    unit: str
    boxes: tuple[Box, ...]
    digits: int = 2
    legend: str = ""
    kind: Literal["boxes"] = "boxes"


@dataclass(frozen=True)
class Series:
    """A line through points, with a band around it where intervals are known."""

    label: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    model: str = ""


@dataclass(frozen=True)
class Lines:
    """Lines over a common axis, and a target if there is one. `y_bounds`: the smallest and the
    largest possible value."""

    title: str
    alt: str
    x: str
    y: str
    series: tuple[Series, ...]
    target: float | None = None
    target_label: str = ""
    y_bounds: tuple[float, ...] = ()
    legend: str = ""
    kind: Literal["lines"] = "lines"


@dataclass(frozen=True)
class Dot:
    """A point of a scatter plot, with its intervals where they are known; `mark` says how it
    compares with the line."""

    label: str
    x: float
    y: float
    mark: Literal["", "suspected", "look", "above"] = ""
    note: str = ""
    x_low: float | None = None
    x_high: float | None = None
    y_low: float | None = None
    y_high: float | None = None
    model: str = ""


@dataclass(frozen=True)
class Scatter:
    """Points in the plane, with a line and a band where there is one. `x_bounds` and `y_bounds`:
    the smallest and the largest possible value."""

    title: str
    alt: str
    x: str
    y: str
    dots: tuple[Dot, ...]
    line: Series | None = None
    legend: str = ""
    x_bounds: tuple[float, ...] = ()
    y_bounds: tuple[float, ...] = ()
    kind: Literal["scatter"] = "scatter"


@dataclass(frozen=True)
class HeatMap:
    """Values by row and column with their intervals, where they are known; None if there is no
    value. With `marks`, values are differences, and a mark says how sure each of them is."""

    title: str
    alt: str
    unit: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    low: tuple[tuple[float | None, ...], ...] = ()
    high: tuple[tuple[float | None, ...], ...] = ()
    digits: int = 2
    row_label: str = ""
    column_label: str = ""
    marks: tuple[tuple[Literal["", "better", "worse", "even"], ...], ...] = ()
    caption: str = ""  # a sentence above the rows
    role: str = ""  # the role whose scores these are
    legend: str = ""
    kind: Literal["heat map"] = "heat map"


Figure: TypeAlias = Intervals | Bars | Boxes | Lines | Scatter | HeatMap
FIGURES: dict[str, type] = {each.kind: each for each in get_args(Figure)}


def json_schema(kind: Any) -> dict[str, Any]:
    """The JSON schema of a type that a result may have: dataclasses of scalars, literals, optional
    values, sequences and mappings by text."""
    if kind is Any:
        return {}
    if kind in SCALARS:
        return {"type": SCALARS[kind]}
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, UnionType):
        return {"anyOf": [json_schema(each) for each in inner]}
    if origin in (tuple, list, Sequence) and (origin is not tuple or inner[1:] == (...,)):
        return {"type": "array", "items": json_schema(inner[0])}
    if origin in (dict, Mapping) and inner[0] is str:
        return {"type": "object", "additionalProperties": json_schema(inner[1])}
    if isinstance(kind, type) and is_dataclass(kind):
        needed = [
            each.name
            for each in fields(kind)
            if each.default is MISSING and each.default_factory is MISSING
        ]
        return object_schema(kind, [each.name for each in fields(kind)], needed)
    if isinstance(kind, type) and (names := getattr(kind, "_fields", None)):  # a named tuple
        defaults: Mapping[str, Any] = kind._field_defaults  # type: ignore[attr-defined]
        return object_schema(kind, names, [name for name in names if name not in defaults])
    raise TaskError(
        f"the result of a part cannot contain {kind}: use dataclasses whose fields are text, "
        "numbers, booleans, lists or mappings"
    )


def object_schema(kind: type, names: Sequence[str], needed: Sequence[str]) -> dict[str, Any]:
    """The JSON schema of a type with named fields."""
    hints = get_type_hints(kind)
    return {
        "type": "object",
        "description": " ".join((kind.__doc__ or "").split()),
        "properties": {name: json_schema(hints[name]) for name in names},
        "required": list(needed),
    }


def as_json(value: Any) -> Any:
    """A result as plain data: dataclasses and named tuples as mappings, other tuples as lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: as_json(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: as_json(getattr(value, name)) for name in value._fields}
    if isinstance(value, Mapping):
        return {str(name): as_json(each) for name, each in value.items()}
    return [as_json(each) for each in value] if isinstance(value, list | tuple) else value
