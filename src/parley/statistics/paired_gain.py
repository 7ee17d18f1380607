"""Gains between two stages on the same items: paired, with intervals that are also valid if few
items change."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from parley.statistics.intervals import ALPHA, UNKNOWN, Interval, compute_interval

Values = Sequence[float | None]  # a score for each play; None: missing


class Play(NamedTuple):
    """The key of a play: an item is played once in each stage. Series are repeats, each with its
    own memory."""

    item: str
    series: int


@dataclass(frozen=True)
class Gain:
    """The increase of the score in a later stage, on the plays with a score in both stages."""

    value: float | None
    low: float | None
    high: float | None
    items: int
    gained: int  # plays that were better in the later stage
    lost: int  # plays that were worse
    unpaired: int  # plays that lack a score in at least one of the two stages
    series: tuple[float, ...] = ()  # the gain of each series, where there are several


@dataclass(frozen=True)
class ItemShare:
    """A mean over items with its interval."""

    value: float | None
    low: float | None
    high: float | None
    items: int


UNKNOWN_SHARE = ItemShare(None, None, None, 0)


@dataclass(frozen=True)
class FeedbackQuality:
    """The agreement between the feedback that a memory uses and the truth."""

    verdicts: int
    unreadable: int  # these keep nothing
    kept: int
    right: int
    kept_and_right: int
    precision: ItemShare  # of what was kept, the share that is right
    recall: ItemShare  # of what was right, the share that was kept


def average_items(plays: Sequence[Play], values: Values) -> dict[str, float]:
    """The mean of each item: first within each series, then over series. Missing values are left
    out."""
    if len({play.item for play in plays}) == len(plays):
        return {
            play.item: value for play, value in zip(plays, values, strict=True) if value is not None
        }
    found: dict[str, dict[int, list[float]]] = {}
    for (item, series), value in zip(plays, values, strict=True):
        if value is not None:
            found.setdefault(item, {}).setdefault(series, []).append(value)
    return {
        item: fmean([each[0] if len(each) == 1 else fmean(each) for each in by_series.values()])
        for item, by_series in found.items()
    }


def estimate_mean(
    plays: Sequence[Play], values: Values, bounds: tuple[float, float] = (0.0, 1.0)
) -> ItemShare:
    """The mean over items, with an interval over items."""
    means = list(average_items(plays, values).values())
    low, high, _ = compute_interval(means, bounds)
    return ItemShare(fmean(means) if means else None, low, high, len(means))


def estimate_share(counts: Iterable[tuple[str, int, int]]) -> ItemShare:
    """A share of cases, from triples (item, number of hits, number of cases), with an interval
    over items."""
    found: dict[str, list[int]] = {}
    for item, cases, of in counts:
        own = found.setdefault(item, [0, 0])
        own[0] += cases
        own[1] += of
    means = [cases / of for cases, of in found.values() if of]
    low, high, _ = compute_interval(means, (0.0, 1.0))
    return ItemShare(fmean(means) if means else None, low, high, len(means))


def compute_gain(
    plays: Sequence[Play],
    before: Values,
    after: Values,
    bounds: tuple[float, float] | None = None,
) -> Gain:
    """The mean of after − before over items, with its paired interval. `bounds` is the range of
    scores with more than two values, most of which change between two stages. A play without a
    score in one of the two stages is left out and counted."""
    gaps: list[float | None] = [
        None if old is None or new is None else new - old
        for old, new in zip(before, after, strict=True)
    ]
    means = list(average_items(plays, gaps).values())
    width = 1.0 if bounds is None else bounds[1] - bounds[0]
    low, high, _ = (
        compute_paired_interval(means)
        if bounds is None
        else compute_interval(means, (-width, width))
    )
    least = 1e-9 * width
    return Gain(
        fmean(means) if means else None,
        low,
        high,
        len(means),
        sum(gap is not None and gap > least for gap in gaps),
        sum(gap is not None and gap < -least for gap in gaps),
        gaps.count(None),
        gains_by_series(plays, gaps),
    )


def gains_by_series(plays: Sequence[Play], gaps: Values) -> tuple[float, ...]:
    """The mean difference of each series, if there are several."""
    numbers = sorted({series for _, series in plays})
    if len(numbers) < 2:
        return ()
    found = []
    for number in numbers:
        own = [
            gap if play.series == number else None for play, gap in zip(plays, gaps, strict=True)
        ]
        if means := average_items(plays, own):
            found.append(fmean(means.values()))
    return tuple(found)


def compute_paired_interval(gaps: Sequence[float], alpha: float = ALPHA) -> Interval:
    """An interval for the mean of paired differences between successes, most of which are zero.

    Items that improve and items that get worse each have an interval that is valid near zero, where
    few items change. The two intervals are combined by the method of variance estimates recovery
    (Zou and Donner 2008), with their correlation. If many items change in both directions, the
    result is Student's t over items.
    """
    up, down = [max(gap, 0.0) for gap in gaps], [max(-gap, 0.0) for gap in gaps]
    up_low, up_high, _ = compute_interval(up, (0.0, 1.0), alpha)
    down_low, down_high, _ = compute_interval(down, (0.0, 1.0), alpha)
    if up_low is None or up_high is None or down_low is None or down_high is None:
        return UNKNOWN
    rise, fall = fmean(up), fmean(down)
    linked = correlate_steps(up, down, rise, fall)

    def reach(one: float, other: float) -> float:
        return math.sqrt(max(0.0, one * one + other * other - 2 * linked * one * other))

    gain = rise - fall
    return Interval(
        max(-1.0, gain - reach(rise - up_low, down_high - fall)),
        min(1.0, gain + reach(up_high - rise, fall - down_low)),
        "paired",
    )


def correlate_steps(up: Sequence[float], down: Sequence[float], rise: float, fall: float) -> float:
    """The correlation of improvements and losses; an item has at most one of them."""
    n = len(up)
    up_variance = math.fsum(step * step for step in up) / n - rise * rise
    down_variance = math.fsum(step * step for step in down) / n - fall * fall
    if up_variance <= 0 or down_variance <= 0:
        return 0.0
    return max(-1.0, -rise * fall / math.sqrt(up_variance * down_variance))


def mean_over_stages(stages: Sequence[Values]) -> list[float | None]:
    """The mean of each play over stages, that is, the area under its learning curve. A play
    without a score in one of the stages has none."""
    return [
        None if any(value is None for value in row) else fmean(row)
        for row in zip(*stages, strict=True)
    ]


def solved_so_far(stages: Sequence[Values]) -> list[float | None]:
    """Whether a play was solved in any of these stages; unknown if it was not and a score is
    missing."""
    return [
        1.0 if 1.0 in row else None if any(value is None for value in row) else 0.0
        for row in zip(*stages, strict=True)
    ]


def estimate_forgotten(
    plays: Sequence[Play], earlier: Sequence[Values], last: Values
) -> tuple[int, int, ItemShare]:
    """Of the plays solved in an earlier stage: their number, how many failed in the last stage,
    and their share over items."""
    failed: list[float | None] = [
        1.0 - now if 1.0 in before and now is not None else None
        for before, now in zip(zip(*earlier, strict=True), last, strict=True)
    ]
    known = [value for value in failed if value is not None]
    return len(known), round(sum(known)), estimate_mean(plays, failed)


def average_gains(gains: Sequence[Gain]) -> Gain:
    """The mean of gains on different sets of items, each with the same weight, whatever its
    number of items. Its interval is combined from their intervals (see
    `compute_paired_interval`); a gain on a single item may have any value."""
    known = [gain for gain in gains if gain.value is not None]
    if not known:
        return Gain(None, None, None, 0, 0, 0, sum(gain.unpaired for gain in gains))
    values = [gain.value or 0.0 for gain in known]
    mean = fmean(values)

    def reach(ends: Sequence[float]) -> float:
        gaps = [end - value for end, value in zip(ends, values, strict=True)]
        return math.sqrt(math.fsum(gap * gap for gap in gaps)) / len(known)

    low = mean - reach([-1.0 if gain.low is None else gain.low for gain in known])
    high = mean + reach([1.0 if gain.high is None else gain.high for gain in known])
    return Gain(
        mean,
        max(-1.0, low),
        min(1.0, high),
        sum(gain.items for gain in known),
        sum(gain.gained for gain in known),
        sum(gain.lost for gain in known),
        sum(gain.unpaired for gain in gains),
    )


def average_known(values: Values) -> float | None:
    """The mean of the known values; None if there are none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def measure_feedback(cases: Iterable[tuple[str, bool | None, bool]]) -> FeedbackQuality:
    """The quality of feedback, from triples (item, verdict, truth) for every match and seat; a
    verdict of None could not be read."""
    found = list(cases)
    kept = [(item, int(truth), 1) for item, verdict, truth in found if verdict]
    right = [(item, int(bool(verdict)), 1) for item, verdict, truth in found if truth]
    return FeedbackQuality(
        verdicts=len(found),
        unreadable=sum(verdict is None for _, verdict, _ in found),
        kept=len(kept),
        right=len(right),
        kept_and_right=sum(truth for _, truth, _ in kept),
        precision=estimate_share(kept),
        recall=estimate_share(right),
    )


class StreamStep(NamedTuple):
    """The state of a stream after some windows, as the mean of all series."""

    window: int
    items: int
    stream: float  # accuracy so far
    control: float
    regret: float  # the sum over items so far of control - stream


def follow_stream(
    windows: Mapping[int, Sequence[tuple[float, float]]], series: int, most: int = 100
) -> list[StreamStep]:
    """The state of a stream and its control after each window, from the pairs (control, stream)
    of its plays in all series; if there are many windows, `most` of them are kept."""
    found, plays = list[StreamStep](), 0
    control = stream = 0.0
    for window in sorted(windows):
        for old, new in windows[window]:
            plays, control, stream = plays + 1, control + old, stream + new
        if plays:
            found.append(
                StreamStep(
                    window,
                    round(plays / series),
                    stream / plays,
                    control / plays,
                    (control - stream) / series,
                )
            )
    if len(found) <= most:
        return found
    return [found[round(at * (len(found) - 1) / (most - 1))] for at in range(most)]
