"""What models learnt from earlier stages (LLM-Evolve): gains, controls and costs. The code that
computes it is loaded only for runs of the plan `evolve`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from parley.results.part import Part, Rows, Style
from parley.results.scores import RunScores
from parley.results.types import Figure
from parley.statistics.paired_gain import Gain, ItemShare
from parley.store.types import RunInfo
from parley.tables import Table

GainKind = Literal["last", "best", "mean", "probe", "solved_so_far"]
ItemSet = Literal["all", "practised", "held_out"]


@dataclass(frozen=True)
class EvolveArmFacts:
    """One arm and its settings; `settings` lists those that differ from the defaults."""

    arm: str
    settings: str
    retriever: str
    feedback: str
    mask: bool
    window: int | None
    stages: int
    control: bool  # one of the three controls of the first arm


@dataclass(frozen=True)
class EvolveStage:
    """A model in one stage of an arm. Stage 0 is the standard stage, which all arms share; a stream
    is one stage."""

    alias: str
    role: str
    arm: str
    stage: int
    probe: bool  # the last stage once more, without experiences of the same item
    criterion: str  # what counts as a success
    success: ItemShare
    metric: str
    score: ItemShare
    solved_so_far: ItemShare  # by this stage or an earlier one
    plays: int
    missing: int  # plays without a score
    experiences: float | None  # shown to a seat, on average
    same_item: ItemShare  # share of the shown experiences that were of the same item
    near_duplicates: ItemShare  # of another item, but nearly the same
    dropped: int  # experiences that were retrieved but did not fit


@dataclass(frozen=True)
class EvolveGain:
    """A paired gain over the standard stage. Intervals are over items, given this memory."""

    alias: str
    role: str
    arm: str
    measure: str  # success, or a metric
    kind: GainKind
    item_set: ItemSet
    stage: int | None
    gain: Gain


@dataclass(frozen=True)
class ArmDifference:
    """The last stage of one arm minus that of another, on the same plays. Both have the same
    standard stage, so this is the difference of their gains."""

    alias: str
    role: str
    arm: str
    other: str
    control: bool
    stage: int  # of the first arm; a stream is one stage
    difference: Gain


@dataclass(frozen=True)
class ForgottenShare:
    """Of the plays that an earlier stage solved, the share that fails in the last stage."""

    alias: str
    role: str
    arm: str
    solved_before: int
    forgotten: int
    share: ItemShare


@dataclass(frozen=True)
class SubjectGain:
    """The gain in one subject; `*` is the unweighted mean over subjects."""

    alias: str
    role: str
    arm: str
    subject: str
    standard: float | None
    last: float | None
    gain: Gain


@dataclass(frozen=True)
class FeedbackRow:
    """How well the feedback of an arm agrees with the task's own score."""

    alias: str
    role: str
    arm: str
    feedback: str
    verdicts: int
    unreadable: int
    kept: int
    right: int
    kept_and_right: int
    precision: ItemShare
    recall: ItemShare


@dataclass(frozen=True)
class LessonRow:
    """The lessons that a model wrote in a role, in all stages."""

    alias: str
    role: str
    matches: int  # after which a lesson was requested
    written: int  # the others had no readable verdict, or the reply was empty
    cut: int  # of these: with more words than a lesson may have


@dataclass(frozen=True)
class StageCost:
    """Cost of a stage; `usd` is None unless the whole cost is known."""

    alias: str
    role: str
    arm: str  # empty for the standard stage, which all arms share
    stage: int
    probe: bool
    calls: int
    tokens_in: int | None
    tokens_cached: int | None
    cached_share: float | None
    tokens_out: int | None
    usd: float | None
    usd_at_least: float | None


@dataclass(frozen=True)
class GainCost:
    """Cost per item gained: what the stages after the standard stage cost, divided by the items
    that the last stage solved more than the standard stage. `usd_per_item_low` and
    `usd_per_item_high` follow from the interval of the gain; None if unknown."""

    alias: str
    role: str
    arm: str
    items_gained: float  # gained minus lost
    tokens: int | None
    tokens_per_item: float | None
    usd: float | None
    usd_per_item: float | None
    usd_per_item_low: float | None
    usd_per_item_high: float | None


@dataclass(frozen=True)
class StreamRow:
    """A stream and its control up to a window, as means over the series."""

    alias: str
    role: str
    arm: str
    window: int
    items: int
    stream: float
    control: float
    regret: float  # sum of control - stream over the items so far; negative: the stream did better


@dataclass(frozen=True)
class StreamRegret:
    """The regret at the end of a stream with its interval over items, and that of each series."""

    alias: str
    role: str
    arm: str
    items: int
    regret: float | None
    low: float | None
    high: float | None
    series: tuple[float, ...]


@dataclass(frozen=True)
class EvolveResult:
    """The results of a run of the plan `evolve`."""

    first: str  # the arm that the main tables show
    arms: tuple[EvolveArmFacts, ...]
    stages: tuple[EvolveStage, ...]
    gains: tuple[EvolveGain, ...]
    differences: tuple[ArmDifference, ...]
    forgotten: tuple[ForgottenShare, ...]
    subjects: tuple[SubjectGain, ...]
    feedback: tuple[FeedbackRow, ...]
    costs: tuple[StageCost, ...]
    gain_costs: tuple[GainCost, ...]
    streams: tuple[StreamRow, ...]
    regrets: tuple[StreamRegret, ...]
    lessons: tuple[LessonRow, ...] = ()


def describe_gains(found: EvolveResult | None) -> list[str]:
    """The line below the main table: the gain of every model, and where to see more."""
    from parley.results.evolve_tables import summarise_gains

    return [] if found is None else [summarise_gains(found)]


def is_evolving(info: RunInfo) -> bool:
    """Whether a run uses the plan `evolve`."""
    return info.config.evolve is not None


def compute_evolve(run: RunScores) -> EvolveResult | None:
    from parley.results.evolve_result import analyse_evolution

    return analyse_evolution(run)


def evolve_rows(found: EvolveResult) -> Rows:
    from parley.results.evolve_result import list_rows

    return list_rows(found)


def evolve_tables(found: EvolveResult, style: Style) -> Sequence[Table]:
    from parley.results.evolve_tables import draw_tables

    return draw_tables(found)


def evolve_figures(found: EvolveResult, style: Style) -> Sequence[Figure]:
    from parley.results.evolve_tables import draw_figures

    return draw_figures(found)


PARTS = (
    Part(
        "evolve",
        "Learning from experience",
        EvolveResult,
        compute_evolve,
        tables=evolve_tables,
        rows=evolve_rows,
        figures=evolve_figures,
        applies=is_evolving,
        absent="not applicable: only runs with `--plan evolve` play the items in several stages",
        section="result",
    ),
)
