"""What `parley simulate` assumes: from its options, or estimated from a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from parley.errors import UsageError
from parley.statistics.variance_components import Components, Scores, estimate_components
from parley.store import find_run, read_run
from parley.store.reader import RunReader
from parley.tables import plural

# noise of judge scores, by their range
USUAL = {(1.0, 10.0): (0.5, 0.4, 1.0), (0.0, 100.0): (8.0, 8.0, 18.0)}
MOST = 200  # models: the work grows with their square
ROUGH = 10  # blocks; fewer say little about noise
STEPS = (1.0, 0.5)  # the roundings of scores that are detected


@dataclass(frozen=True)
class Assumptions:
    """What is simulated."""

    means: list[list[float]] = field(default_factory=list)  # by role and model
    low: float = 1.0
    high: float = 10.0
    noise: tuple[float, float, float] | None = None  # item, model × item, match
    step: float | None = 1.0
    seats: int = 2
    half_width: float | None = None
    run: str | None = None  # the run that the estimates come from
    # whether the means are those of recorded scores, not abilities before noise
    fitted: bool = False
    remarks: tuple[str, ...] = ()

    @property
    def roles(self) -> int:
        return len(self.means)

    @property
    def models(self) -> int:
        return len(self.means[0]) if self.means else 0


def parse_numbers(text: str, what: str, form: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{what} must be numbers like {form}, not {text!r}") from None
    if not all(map(math.isfinite, found)):
        raise UsageError(f"{what} must be finite numbers like {form}, not {text!r}")
    return found


def with_scores(
    assumed: Assumptions, bounds: str | None, step: float | None, noise: str | None
) -> Assumptions:
    """Set the range, the rounding and the noise of scores."""
    if bounds is not None:
        ends = parse_numbers(bounds, "--range", "1,10")
        if len(ends) != 2 or not 0 < ends[1] - ends[0] < math.inf:
            raise UsageError(
                f"--range must be the lowest and the highest score, like 1,10, not {bounds!r}"
            )
        assumed = replace(assumed, low=ends[0], high=ends[1])
    if step is not None:
        if not 0 <= step <= assumed.high - assumed.low:
            raise UsageError(
                "--step must be from 0 (no rounding) to the range of the scores "
                f"({assumed.high - assumed.low:g}), not {step:g}"
            )
        assumed = replace(assumed, step=step or None)
    if noise is not None:
        parts = parse_numbers(noise, "--noise", "0.5,0.4,1")
        if len(parts) != 3 or min(parts) < 0:
            raise UsageError(
                "--noise must be three standard deviations of at least 0 (between items, of a "
                f"model on an item, between matches), not {noise!r}"
            )
        return replace(assumed, noise=(parts[0], parts[1], parts[2]))
    if assumed.noise is None and assumed.run is None:
        usual = USUAL.get((assumed.low, assumed.high))
        if usual is None:
            raise UsageError(
                f"there is no default noise for scores from {assumed.low:g} to {assumed.high:g}: "
                "set --noise ITEM,MODEL_ITEM,MATCH (standard deviations)"
            )
        return replace(assumed, noise=usual)
    return assumed


def with_models(
    assumed: Assumptions,
    abilities: Sequence[str],
    models: int | None,
    best: float | None,
    worst: float | None,
) -> Assumptions:
    """Set the models: a list of abilities, evenly spread ones, or the models of the run."""
    if abilities:
        if models is not None or best is not None or worst is not None:
            raise UsageError(
                "use either --abilities (one mean score for each model), or --models, --best "
                "and --worst (evenly spaced mean scores), but not both"
            )
        rows = [parse_numbers(text, "--abilities", "9,8.8,8.5") for text in abilities]
        if len(rows) > 2 or len({len(row) for row in rows}) > 1:
            raise UsageError(
                "give --abilities once, or twice for two roles, each time with one number for "
                "every model"
            )
        return replace(assumed, means=rows, fitted=False)
    if models is None:
        if best is not None or worst is not None:
            raise UsageError("--best and --worst need --models N")
        return assumed
    if assumed.run is None and (best is None or worst is None):
        raise UsageError(
            f"--models {models} needs --best X and --worst X: abilities are spread evenly between "
            "them"
        )
    ends = [
        (max(row) if best is None else best, min(row) if worst is None else worst)
        for row in assumed.means or [[]]
    ]
    for first, last in ends:
        if not math.inf > first >= last > -math.inf:
            raise UsageError(
                f"--best must be at least as high as --worst, but --best is {first:g} and "
                f"--worst is {last:g}"
            )
    rows = [
        [first + (last - first) * at / (models - 1) for at in range(models)] for first, last in ends
    ]
    return replace(assumed, means=rows, fitted=assumed.fitted and best is None and worst is None)


def with_seats(
    assumed: Assumptions, seats: int | None, roles: int | None, usual: int | None
) -> Assumptions:
    """Set the contestants of a match and their roles; `usual` is the number of roles of the run."""
    seats = seats or (2 if roles == 2 else assumed.seats)
    rows = assumed.means
    wanted = roles or (len(rows) if len(rows) == 2 else min(seats, usual or seats))
    if wanted > seats:
        raise UsageError(
            f"{wanted} roles need {wanted} seats per match, but --seats is {seats}: use --seats 2"
        )
    if rows and len(rows) > wanted:
        raise UsageError(
            f"abilities are given for {len(rows)} roles, but only {wanted} would be simulated: "
            "give --abilities once"
        )
    return replace(assumed, seats=seats, means=rows * wanted if len(rows) == 1 else rows)


def check_assumptions(
    assumed: Assumptions, alpha: float, top: int | None, usd: float | None
) -> None:
    """Raise an error if an assumption is missing or impossible."""
    if not assumed.means:
        raise UsageError(
            "no models are given: add --abilities 9,8.8,8.5 or --models 10 --best 9 --worst "
            "8.5, or name a run"
        )
    if assumed.models < 2:
        raise UsageError(f"a simulation needs at least two models, not {assumed.models}")
    if assumed.models > MOST:
        raise UsageError(f"a simulation takes at most {MOST} models, not {assumed.models}")
    if assumed.half_width is None:
        raise UsageError(
            "no precision is given: add --half-width X, the half-width of the confidence "
            "intervals that you want, in points of the score"
        )
    if not 0 < assumed.half_width < assumed.high - assumed.low:
        raise UsageError(
            f"--half-width must be more than 0 and less than the range of the scores "
            f"({assumed.high - assumed.low:g}), not {assumed.half_width:g}"
        )
    for value in (value for row in assumed.means for value in row):
        if not assumed.low <= value <= assumed.high:
            raise UsageError(
                f"an ability of {value:g} is outside the range of the scores, {assumed.low:g} to "
                f"{assumed.high:g}: change it, or set --range"
            )
    if assumed.noise is None:
        raise UsageError(
            "this run has only one block, and the noise cannot be estimated from a single "
            "block: set --noise ITEM,MODEL_ITEM,MATCH, or play more blocks"
        )
    if not 0 < alpha < 1:
        raise UsageError(f"--alpha must be between 0 and 1, not {alpha:g}")
    if top is not None and top > assumed.models:
        raise UsageError(f"--top {top} is too high, because there are only {assumed.models} models")
    if usd is not None and not 0 <= usd < math.inf:
        raise UsageError(f"--usd-per-match must be at least 0, not {usd:g}")


def estimate_from_run(name: str, store: str | None, seats: int | None) -> Assumptions:
    """Estimate means, range, noise, rounding, roles and seats from the matches of a run so far."""
    with read_run(find_run(name, store)) as reader:
        identity, aliases = reader.info.identity, reader.info.config.contestants
        here = sum(
            count
            for role, count in identity["seats"].items()
            if identity["roles"][role] == "contestant"
        )
        if here > 2 and seats is None:
            raise UsageError(
                f"{reader.info.id} has {here} contestants per match, but only matches with 1 or "
                "2 contestants can be simulated: add --seats 2 to simulate its matches as if "
                "they had two"
            )
        if len(aliases) < 2:
            raise UsageError(
                f"{reader.info.id} has only one model ({aliases[0]}), but a simulation needs "
                "at least two"
            )
        metrics = find_ranked_metrics(identity, reader.info.id)
        scores = collect_scores(reader, metrics)
        for role in metrics:
            for alias in aliases:
                if not scores.get((role, alias)):
                    raise UsageError(
                        f"{reader.info.id}: {alias} as {role} has no score in "
                        f"`{metrics[role]['name']}` in any match, so nothing can be estimated: "
                        "set --abilities instead of naming a run"
                    )
        first = next(iter(metrics.values()))
        single = [
            value for blocks in scores.values() for values in blocks.values() for value in values
        ]
        several = all(len(blocks) > 1 for blocks in scores.values())
        found = estimate_components(scores) if several else None
        return Assumptions(
            means=[
                [fmean(map(fmean, scores[role, alias].values())) for alias in aliases]
                for role in metrics
            ],
            low=first["low"],
            high=first["high"],
            noise=(found.item, found.model_item, found.match) if found else None,
            step=next((step for step in STEPS if all(value % step == 0 for value in single)), None),
            seats=min(here, 2),
            half_width=min(metric["epsilon"] for metric in metrics.values()),
            run=reader.info.id,
            fitted=True,
            remarks=tuple(
                describe_caveats(
                    found, any(metric["better"] == "lower" for metric in metrics.values())
                )
            ),
        )


def find_ranked_metrics(identity: Mapping[str, Any], run: str) -> dict[str, dict[str, Any]]:
    """By contestant role, the metric that plans use: the first one that the role has."""
    found: dict[str, dict[str, Any]] = {}
    roles = [role for role, kind in identity["roles"].items() if kind == "contestant"]
    for role in roles:
        metric = next(
            (each for each in identity["metrics"] if not each["roles"] or role in each["roles"]),
            None,
        )
        if metric is not None:
            found[role] = metric
    if len(found) < len(roles):
        raise UsageError(
            f"{run}: {', '.join(sorted(set(roles) - set(found)))} has no score, but a simulation "
            "needs a score for every role"
        )
    if len({(metric["low"], metric["high"], metric["better"]) for metric in found.values()}) > 1:
        said = ", ".join(
            f"{role}: {each['name']} {each['low']:g} to {each['high']:g}"
            for role, each in found.items()
        )
        raise UsageError(
            f"the roles of {run} have scores with different ranges ({said}), which cannot be "
            "simulated together: set --abilities instead of naming a run"
        )
    return found


def collect_scores(reader: RunReader, metrics: Mapping[str, Mapping[str, Any]]) -> Scores:
    """Scores by role and model, block and match. Seats that only complete a match are left out, and
    scores are mirrored so that higher is better."""
    found: dict[tuple[str, str], dict[str, dict[int, list[float]]]] = {}
    for score in reader.scores.read():
        metric = metrics.get(score.seat.role)
        if (
            metric is None
            or score.metric != metric["name"]
            or score.value is None
            or score.unscored
        ):
            continue
        value = (
            score.value
            if metric["better"] == "higher"
            else metric["low"] + metric["high"] - score.value
        )
        cell = found.setdefault((score.seat.role, score.alias), {})
        cell.setdefault(score.block, {}).setdefault(score.match, []).append(value)
    return {
        cell: {
            block: [fmean(values) for values in matches.values()]
            for block, matches in blocks.items()
        }
        for cell, blocks in found.items()
    }


def describe_caveats(found: Components | None, lower: bool) -> list[str]:
    """Warnings about an estimate."""
    said = (
        [
            "lower scores are better in this run, so the simulation mirrors all scores: in "
            "this table, higher is better"
        ]
        if lower
        else []
    )
    if found is None:
        return said
    if not found.separable:
        said.append(
            "every block has one match per model, so the noise of a model on an item cannot be "
            "told from the noise between matches; all of it is simulated as noise between "
            "matches"
        )
    if found.opposed > 1:
        said.append(
            "the simulation ignores that in this run one model's gain is another model's loss "
            f"(zero-sum), so a ranking may need {found.opposed:.1f} times as many matches as "
            "shown here"
        )
    if found.blocks < ROUGH:
        said.append(
            "the estimate of the noise is rough, because the run has only "
            f"{plural(found.blocks, 'block')}"
        )
    return said
