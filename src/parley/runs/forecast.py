"""Forecasts calls, tokens and cost of a run: plays its matches with stand-ins for the models."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any

import orjson

from parley.config.batch_api import concurrency_of, uses_batch_api
from parley.config.identity import roster_of
from parley.config.prepare import Prepared, order_of_draws
from parley.config.prices import writes_cache
from parley.config.recorded_matches import RecordedReplies, recorded_match
from parley.errors import ParleyError
from parley.match.match import Match
from parley.match.protocol import Participant
from parley.match.seating import seat_counts
from parley.memory.feedback import FEEDBACK_ROLES
from parley.money import is_free
from parley.participants._registry import LIMITS, ModelLimits, read_limit
from parley.plans import Done, EndedMatches, MatchSpec
from parley.plans.evolve import EvolvePlan
from parley.rules.pool import Seat
from parley.rules.quotations import derive_match_key
from parley.rules.task import Metric
from parley.runs.event_loop import run_sync
from parley.runs.forecast_growth import describe_growth, forecast_growth
from parley.runs.forecast_recall import Rehearsal
from parley.runs.forecast_time import (
    FAST,
    SLOW,
    CallSpeed,
    RunTime,
    describe_time,
    estimate_time,
)
from parley.runs.people_votes import count_wanted_votes, describe_wanted_votes
from parley.runs.stand_ins import (
    CACHE,
    HIGH,
    LATIN,
    LOW,
    USUAL,
    Count,
    ReplyAssumption,
    StandIn,
    fake_verdict,
)
from parley.store import read_run
from parley.store.config import Config
from parley.tables import plural

PREVIEW = 3  # matches that are played to estimate the calls of a run
SAMPLE = 40  # matches that are played; more are scaled up from these
NO_SECRET = "00" * 16  # no model reads what stand-ins are shown
MOST_BLOCKS = 3000  # of a sequential plan; a forecast stops there
Cell = tuple[str, str]  # alias, role


@dataclass
class Forecast:
    """Calls, tokens and money to expect, each with the least and the most."""

    rows: list[dict[str, Any]]
    matches: int
    sequential: bool
    # for more models: graded one by one, and in pairs
    scaling: list[dict[str, float]] = field(default_factory=list)
    # for other numbers of models: matches, calls and cost
    growth: list[dict[str, Any]] = field(default_factory=list)
    # from fast endpoints to slow ones; None: it depends on the batch APIs of providers
    time: tuple[RunTime, RunTime] | None = (RunTime(0.0, ""), RunTime(0.0, ""))
    # votes that people will be asked for, at the most, by stage
    people_votes: dict[int, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def usd(self) -> dict[str, float | None]:
        """The range of the cost; null where a price is unknown."""
        ends = {end: [row["usd"][end] for row in self.rows] for end in ("low", "high")}
        return {end: None if None in values else sum(values) for end, values in ends.items()}

    @property
    def data(self) -> dict[str, Any]:
        """The forecast as `--dry-run --json` prints it."""
        keys = ("calls", "tokens_in", "tokens_out")
        known = [row["usd"] for row in self.rows if row["usd"]["high"] is not None]
        return {
            "schema": "parley.forecast/1",
            **{key: sum(row[key] for row in self.rows) for key in keys},
            "usd": self.usd,
            "usd_known": {end: sum(usd[end] for usd in known) for end in ("low", "high")},
            "range": {
                key: {
                    end: sum(row["range"][key][end] for row in self.rows) for end in ("low", "high")
                }
                for key in keys
            },
            "matches": self.matches,
            "blocks_are_forecast": self.sequential,
            "by_model": self.rows,
            "scaling": self.scaling,
            "growth": self.growth,
            "seconds": {
                end: None if self.time is None else self.time[at].seconds
                for at, end in enumerate(("low", "high"))
            },
            "limited_by": None if self.time is None else self.time[1].limited_by or None,
            "people_votes": [
                {"stage": stage, "votes": count} for stage, count in self.people_votes.items()
            ],
            "notes": self.notes,
        }


def forecast_run(prepared: Prepared) -> Forecast:
    """Play a sample of the plan's matches with stand-ins, and scale up."""
    plans = {assumed: expect_matches(prepared, assumed) for assumed in (LOW, USUAL, HIGH)}
    batched = [alias for alias, each in prepared.config.live_models.items() if uses_batch_api(each)]
    found, faults, times, sent = {}, set[str](), {}, 0
    for assumed, (specs, _) in plans.items():
        cast = {
            alias: StandIn(alias, options, type(prepared.task), assumed)
            for alias, options in prepared.config.live_models.items()
        }
        found[assumed], rounds, wrong = count_usage(prepared, specs, cast)
        faults |= wrong
        if assumed is not USUAL:
            speed = FAST if assumed is LOW else SLOW
            times[assumed] = estimate_run_time(prepared, found[assumed], rounds, len(specs), speed)
        else:
            sent = math.ceil(rounds / max(1, min(len(specs), concurrency_of(prepared.config))))
            grown = compare_with_pairs(prepared, found[assumed], cast, len(specs))
    sequential = prepared.config.stop is not None
    rows = []
    for alias, role in sorted({cell for each in found.values() for cell in each}):
        low, usual, high = (
            found[assumed].get((alias, role), Count()) for assumed in (LOW, USUAL, HIGH)
        )
        if is_free(prepared.config.models[alias]):  # a bot, which reads no tokens
            low, usual, high = (Count(each.calls) for each in (low, usual, high))
        price, kept = prepared.prices.of(alias), writes_cache(prepared.config.models[alias])

        def usd(count: Count, price: Any = price, kept: bool = kept) -> float | None:
            if price is None:
                return None
            written = (
                count.tokens_in - count.cached if kept and mean_request_size(count) >= CACHE else 0
            )
            return float(
                price.usd(
                    count.tokens_in,
                    count.cached,
                    count.tokens_out,
                    mean_request_size(count),
                    written,
                )
            )

        rows.append(
            {
                "alias": alias,
                "role": role,
                "model": prepared.config.models[alias]["model"],
                **{key: round(getattr(usual, key)) for key in ("calls", "tokens_in", "tokens_out")},
                "usd": {"low": usd(low), "high": usd(high)},
                "range": {
                    key: {"low": round(getattr(low, key)), "high": round(getattr(high, key))}
                    for key in ("calls", "tokens_in", "tokens_out")
                },
            }
        )
    notes = [
        f"token counts are estimates that assume {LATIN} characters per token (1 for Chinese, "
        f"Japanese and Korean), {LOW.text} to {HIGH.text} tokens per reply in plain text, and "
        f"{LOW.form} to {HIGH.form} tokens per reply in JSON"
    ]
    if sequential:
        least, most = (plans[assumed][1] for assumed in (LOW, HIGH))
        notes.append(
            f"the number of blocks is also an estimate ({least:,} to {most:,}), because the "
            "stopping rule decides when the run ends"
        )
    if unpriced := [
        alias for alias in prepared.config.live_models if prepared.prices.of(alias) is None
    ]:
        notes.append(
            f"no price is known for {', '.join(unpriced)}, so the cost is incomplete; see the "
            'docs page "Budgets and prices"'
        )
    notes += [
        f"this estimate is too low, because a match could not be simulated to its end: {fault}"
        for fault in sorted(faults)[:3]
    ]
    growth = forecast_growth(prepared, plans[USUAL][0], rows)
    notes += describe_growth(growth)
    notes += [
        f"for {plural(int(row['models']), 'model')}, judges that grade each model alone would "
        f"cost about {row['single']:,.2f} USD, and judges that compare all pairs would cost "
        f"about {row['pairwise']:,.2f} USD"
        for row in grown
        if row["models"] > 1
    ]
    time = None if batched else (times[LOW], times[HIGH])
    if time is not None and time[1].seconds:
        notes.append(describe_time(*time))
    if batched:
        notes.append(
            f"{', '.join(batched)}: about {plural(sent, 'batch', 'batches')} of requests through "
            "the batch APIs of providers, one after the other; each takes minutes to 24 hours"
        )
    votes = count_wanted_votes(prepared)
    if votes:
        notes.append(describe_wanted_votes(votes))
    return Forecast(
        rows,
        len(plans[USUAL][0]),
        sequential,
        grown,
        growth=growth,
        time=time,
        people_votes=votes,
        notes=notes,
    )


def estimate_run_time(
    prepared: Prepared, found: Mapping[Cell, Count], rounds: float, matches: int, speed: CallSpeed
) -> RunTime:
    """How long the run takes at its limits; bots take no time."""
    loads: dict[str, Count] = {}
    for (alias, _), count in found.items():
        if not is_free(prepared.config.models[alias]):
            loads[alias] = loads.get(alias, Count()).plus(count)
    limits = {
        alias: ModelLimits(*(read_limit(dict(options), name, alias) for name in LIMITS))
        for alias, options in prepared.config.live_models.items()
    }
    concurrency = concurrency_of(prepared.config)
    return estimate_time(loads, limits, rounds, matches, concurrency, speed)


def compare_with_pairs(
    prepared: Prepared, found: Mapping[Cell, Count], cast: Mapping[str, StandIn], matches: int
) -> list[dict[str, float]]:
    """The cost of grading more models one by one, and of comparing all pairs (KIEval §F); empty
    unless instruments grade contestants one by one.

    A pair is assumed to cost, on every item, one reply of the instrument that reads most, which
    reads both conversations in full.
    """
    roles = prepared.task.roles
    instruments = {
        cell: count
        for cell, count in found.items()
        if roles[cell[1]].instrument and cell[1] not in FEEDBACK_ROLES and count.calls
    }
    one = sum(not roles[seat.role].instrument for seat in prepared.plan.first_match.seats) == 1
    prices = {alias: prepared.prices.of(alias) for alias, _ in instruments}
    if not instruments or not one or any(price is None or price.free for price in prices.values()):
        return []
    models = len(prepared.config.contestants)
    single = pair = 0.0
    for (alias, role), count in instruments.items():
        price, size = prices[alias], mean_request_size(count)
        assert price is not None
        single += price.usd(count.tokens_in, 0, count.tokens_out, size) / models
        whole = price.usd(2 * cast[alias].longest(role), 0, count.tokens_out / count.calls)
        pair = max(pair, whole * matches / models)
    return scale_costs(single, pair, sorted({1, 10, 100, models}))


def mean_request_size(count: Count) -> float:
    return count.tokens_in / count.calls if count.calls else 0.0


def count_usage(
    prepared: Prepared, specs: Sequence[MatchSpec], cast: Mapping[str, StandIn]
) -> tuple[dict[Cell, Count], float, set[str]]:
    """Count the usage of all matches from a sample of them, and their rounds."""
    sample, faults, rounds = choose_sample(specs), set[str](), 0
    evolve = prepared.config.evolve
    rehearsal = None if evolve is None or prepared.source else Rehearsal(evolve)
    for spec in sample:
        for stand_in in cast.values():
            stand_in.begin(spec.seed)
        try:
            rounds += run_sync(make_match(prepared, spec, cast, rehearsal).play()).rounds
        except ParleyError as fault:
            faults.add(str(fault))
    played, planned = (count_appearances(each, prepared.config) for each in (sample, specs))
    found: dict[Cell, Count] = {}
    for (alias, role), seats in planned.items():
        count = cast[alias].counts.get(role, Count())
        found[alias, role] = count.times(cast[alias].again * seats / played[alias, role])
    return found, rounds / len(sample) * len(specs), faults


async def estimate_calls(
    prepared: Prepared, specs: Sequence[MatchSpec], finished: Container[int] = ()
) -> float | None:
    """How many calls a match takes, from a few matches that have not ended, played with stand-ins;
    None if they cannot play."""
    config, left = prepared.config, sum(spec.number not in finished for spec in specs)
    step = max(1, left // PREVIEW)
    unfinished = (spec for spec in specs if spec.number not in finished)
    sample = list(islice(unfinished, 0, step * PREVIEW, step))
    cast = {
        alias: StandIn(alias, options, type(prepared.task), USUAL)
        for alias, options in config.live_models.items()
    }
    for spec in sample:
        for stand_in in cast.values():
            stand_in.begin(spec.seed)
        try:
            await make_match(prepared, spec, cast).play()
        except ParleyError:
            return None
    calls = sum(count.calls for each in cast.values() for count in each.counts.values())
    return calls / len(sample) if sample and calls else None


def make_match(
    prepared: Prepared,
    spec: MatchSpec,
    cast: Mapping[str, Participant],
    rehearsal: Rehearsal | None = None,
) -> Match:
    """A match with stand-ins for the participants that would be called."""
    record, secret = None, NO_SECRET
    if prepared.source is not None:
        with read_run(prepared.source) as reader:
            secret = reader.run.quotation_secret()
            record = recorded_match(reader, spec.number, prepared.config)
    seated: dict[Seat, Participant] = {}
    for seat, alias in spec.seats.items():
        live = prepared.config.is_live_role(seat.role)
        who: Participant = cast[alias] if live else RecordedReplies()
        plays = rehearsal is not None and not prepared.task.roles[seat.role].instrument
        seated[seat] = rehearsal.wrap(spec, seat, who) if rehearsal and plays else who
    return Match(
        prepared.task,
        seated,
        quotation_key=derive_match_key(secret, spec.number),
        record=record,
        roster=roster_of(prepared.config),
        seed=spec.seed,
        item=prepared.items[spec.item] if spec.item is not None else None,
        prompts=prepared.prompts,
        standardise=prepared.config.standardise,
        execute=fake_verdict if prepared.task.runs_code else None,
        works=prepared.works,
        draw_order=order_of_draws(prepared.config, spec),
    )


def choose_sample(specs: Sequence[MatchSpec]) -> list[MatchSpec]:
    """Choose some matches, evenly spread, that have each model in each of its roles."""
    if len(specs) <= SAMPLE:
        return list(specs)
    chosen = {round(at * (len(specs) - 1) / (SAMPLE - 1)) for at in range(SAMPLE)}
    seen = {(alias, seat.role) for at in chosen for seat, alias in specs[at].seats.items()}
    for at, spec in enumerate(specs):
        cells = {(alias, seat.role) for seat, alias in spec.seats.items()}
        if not cells <= seen:
            chosen.add(at)
            seen |= cells
    return [specs[at] for at in sorted(chosen)]


def count_appearances(specs: Sequence[MatchSpec], config: Config) -> dict[Cell, int]:
    """How often each model fills each role that is played live."""
    found: dict[Cell, int] = {}
    for spec in specs:
        for seat, alias in spec.seats.items():
            if not config.is_live_role(seat.role):
                continue
            found[alias, seat.role] = found.get((alias, seat.role), 0) + 1
    return found


def expect_matches(prepared: Prepared, assumed: ReplyAssumption) -> tuple[Sequence[MatchSpec], int]:
    """All matches that the plan will ask for, and how many blocks. A sequential plan gets random
    scores."""
    plan, rng = prepared.plan, Random(prepared.config.seed)
    if isinstance(plan, EvolvePlan):  # all its matches are known beforehand
        specs = [spec for stage in plan.stages for spec in stage]
        return specs, count_blocks(plan.stages[0])
    order = {alias: at for at, alias in enumerate(prepared.config.contestants)}
    metrics = prepared.task.metrics(seat_counts(plan.first_match.seats, prepared.task))
    specs, scores = [], dict[int, dict[Seat, dict[str, float | None]]]()
    for matches in plan.matches(EndedMatches(scores)):
        if isinstance(matches, Done):
            break
        if prepared.config.stop is None:
            return matches, count_blocks(matches)
        specs += matches
        if count_blocks(specs) >= MOST_BLOCKS:
            break
        for spec in matches:
            scores[spec.number] = {
                seat: {
                    m.name: draw_score(m, assumed, order[alias] / max(1, len(order) - 1) - 0.5, rng)
                    for m in metrics
                }
                for seat, alias in spec.seats.items()
                if alias in order
            }
    return specs, count_blocks(specs)


def count_blocks(specs: Iterable[MatchSpec]) -> int:
    """How many blocks some matches have."""
    return len({spec.block for spec in specs})


def draw_score(metric: Metric, assumed: ReplyAssumption, place: float, rng: Random) -> float:
    """Draw a random score around the middle of the range, with models as far apart as assumed."""
    spread = (metric.high - metric.low) / 4 if metric.spread is None else metric.spread
    middle = (metric.low + metric.high) / 2 + place * assumed.apart * spread
    return min(max(rng.gauss(middle, assumed.spread * spread), metric.low), metric.high)


def scale_costs(
    single: float, pair: float, models: Sequence[int] = (1, 10, 100)
) -> list[dict[str, float]]:
    """The cost of grading for each number of models: one by one, which is linear, or by comparing
    every pair (KIEval, table 15)."""
    return [{"models": n, "single": single * n, "pairwise": pair * n * (n - 1) / 2} for n in models]


def evaluation_cost(tokens_in: float, tokens_out: float, input: float, output: float) -> float:
    """The cost of one evaluation, at prices per million tokens (KIEval, tables 14 and 15)."""
    return (tokens_in * input + tokens_out * output) / 1_000_000


def compare_with_limits(found: Forecast, config: Config) -> list[str]:
    """Say whether the limits of a run are enough for its forecast."""
    calls, said = found.data["range"]["calls"], []
    limits: list[tuple[str, float | None, float | None, float | None, Callable[[float], str]]] = [
        (
            f"--budget-usd {config.budget_usd or 0:g}",
            config.budget_usd,
            found.usd["low"],
            found.usd["high"],
            lambda usd: f"{usd:,.4f} USD",
        ),
        (
            f"--max-calls {config.max_calls}",
            config.max_calls,
            calls["low"],
            calls["high"],
            lambda count: plural(int(count), "call"),
        ),
    ]
    for flag, limit, low, high, write in limits:
        if limit is None or low is None or high is None:
            continue
        if limit < low:
            said.append(f"{flag} is too low: the run will need at least {write(low)}")
        elif limit < high:
            said.append(f"{flag} may be too low: the run may need up to {write(high)}")
        else:
            said.append(f"{flag} is enough according to this forecast")
    return said


def encode_forecast(found: Forecast) -> str:
    """The JSON that `--dry-run --json` prints."""
    return orjson.dumps(found.data, option=orjson.OPT_INDENT_2).decode()
