"""Prices of tokens, and what a run has cost. An unknown cost is never zero."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from parley.rules.pool import Seat
from parley.store.reader import RunReader
from parley.store.types import UsageRow
from parley.tables import plural

COUNTS = ("tokens_in", "tokens_cached", "tokens_written", "tokens_out", "tokens_reasoning")
MILLION = 1_000_000
FREE = ("bot", "scripted", "human")  # participants that are not models


class Rate(NamedTuple):
    """USD per million tokens, for calls with more input tokens than this."""

    above: int
    input: float
    cached_input: float
    output: float
    written_input: float | None = None  # for input written to a cache; None: as other input

    @property
    def written(self) -> float:
        return self.input if self.written_input is None else self.written_input

    @property
    def free(self) -> bool:
        return not (self.input or self.cached_input or self.written or self.output)


@dataclass(frozen=True)
class Price:
    """The price of a model's tokens. Reasoning is part of the output; tokens read from or written
    to a cache are part of the input."""

    rates: tuple[Rate, ...]  # by size of the call, the smallest first
    source: str  # the name of a file, public, or free
    as_of: str = ""  # the day, and the release of the public list

    @classmethod
    def flat(
        cls,
        input: float,
        output: float,
        cached_input: float | None = None,
        written_input: float | None = None,
        **known: str,
    ) -> Price:
        return cls(
            (
                Rate(
                    -1,
                    input,
                    input if cached_input is None else cached_input,
                    output,
                    written_input,
                ),
            ),
            **known,
        )

    @classmethod
    def kept(cls, found: Mapping[str, Any]) -> Price:
        """A price from the record of a run."""
        return cls(
            tuple(Rate(*rate) for rate in found["rates"]),
            str(found["source"]),
            str(found.get("as_of", "")),
        )

    @property
    def facts(self) -> dict[str, Any]:
        """The price for the record of a run."""
        return {
            "rates": [list(rate) for rate in self.rates],
            "source": self.source,
            "as_of": self.as_of,
        }

    @property
    def free(self) -> bool:
        return all(rate.free for rate in self.rates)

    def halved(self) -> Price:
        """The usual price of calls through a batch interface."""
        rates = (
            Rate(
                rate.above,
                rate.input / 2,
                rate.cached_input / 2,
                rate.output / 2,
                None if rate.written_input is None else rate.written_input / 2,
            )
            for rate in self.rates
        )
        as_of = f"{self.as_of}, half price for batches" if self.as_of else "half price for batches"
        return Price(tuple(rates), self.source, as_of)

    def rate(self, tokens_in: float) -> Rate:
        return next(rate for rate in reversed(self.rates) if tokens_in > rate.above)

    def usd(
        self,
        tokens_in: float | None,
        cached: float | None,
        tokens_out: float | None,
        size: float | None = None,
        written: float | None = None,
    ) -> float:
        """The known cost of calls, each with about `size` input tokens; tokens that were not
        counted add nothing."""
        rate, into = self.rate((tokens_in or 0) if size is None else size), tokens_in or 0
        read = min(cached or 0, into)
        kept = min(written or 0, into - read)
        input = (into - read - kept) * rate.input + read * rate.cached_input + kept * rate.written
        return (input + (tokens_out or 0) * rate.output) / MILLION

    def most(self, tokens_in: float, tokens_out: float) -> float:
        """The maximum cost of a call with at most this many tokens."""
        reached = [rate for rate in self.rates if tokens_in > rate.above]
        into = max(max(rate.input, rate.cached_input, rate.written) for rate in reached)
        return (tokens_in * into + tokens_out * max(rate.output for rate in reached)) / MILLION


NOTHING = Price.flat(0, 0, source="free")


# alias, options of the model, the name it was served under, the day of the price
FindPrice = Callable[[str, Mapping[str, Any], str | None, datetime | None], Price | None]


class Prices:
    """The prices of a run's models: as the run recorded them, or else from the user's price file or
    the public list."""

    def __init__(
        self,
        models: Mapping[str, Mapping[str, Any]],
        on: datetime | None = None,
        kept: Mapping[str, Mapping[str, Any]] | None = None,
        used: Mapping[tuple[str, str | None], Mapping[str, Any]] | None = None,
        look_up: FindPrice | None = None,
    ) -> None:
        """`kept` are the prices at the start of the run, by alias; `used` are those by the names
        that endpoints reported.

        `look_up` finds a price that the run did not record; without it such a price is unknown.
        """
        self._models, self._on, self._kept, self._used = models, on, kept or {}, used or {}
        self._look_up: FindPrice = look_up or (lambda alias, options, served, on: None)
        self._found: dict[tuple[str, str | None], Price | None] = {}

    def of(self, alias: str, served: str | None = None) -> Price | None:
        """The price of a model, by the name that the endpoint reported if there is one; None if
        unknown."""
        if (alias, served) not in self._found:
            self._found[alias, served] = self._looked_up(alias, served)
        return self._found[alias, served]

    def _looked_up(self, alias: str, served: str | None) -> Price | None:
        options = self._models.get(alias, {})
        family, _, name = str(options.get("model", "")).partition("/")
        if family in FREE:
            return NOTHING
        if (alias, served) in self._used:
            return Price.kept(self._used[alias, served])
        kept = Price.kept(self._kept[alias]) if alias in self._kept else None
        if kept is not None and (kept.source != "public" or served in (None, name)):
            return kept
        found = self._look_up(alias, options, served, self._on)
        return found or kept or self._look_up(alias, options, None, self._on)

    def keep(self) -> dict[str, dict[str, Any]]:
        """The known prices by requested model, for the record of the run."""
        found = {alias: self.of(alias) for alias in self._models}
        return {
            alias: price.facts
            for alias, price in found.items()
            if price is not None and price is not NOTHING
        }

    def used(self, served: Iterable[tuple[str, str | None]]) -> list[dict[str, Any]]:
        """The known prices by served model, for the record of the run."""
        found = [
            (alias, name, self.of(alias, name))
            for alias, name in served
            if not is_free(self._models[alias])
        ]
        return [
            {"alias": alias, "model_served": name, **price.facts}
            for alias, name, price in found
            if price is not None
        ]

    def model(self, alias: str) -> str:
        return str(self._models[alias]["model"])

    def unknown(self) -> list[str]:
        """The aliases without a known price."""
        return [alias for alias in self._models if self.of(alias) is None]


def is_free(options: Mapping[str, Any]) -> bool:
    """Whether a participant is not a model, and so costs nothing."""
    return str(options["model"]).partition("/")[0] in FREE


class Total(NamedTuple):
    """A total that may be known fully, partly or not at all."""

    calls: int
    usd: float | None  # None: not fully known
    at_least: float | None  # the known part; None: nothing is known

    def __str__(self) -> str:
        if self.usd is not None:
            return format_usd(self.usd)
        return "–" if self.at_least is None else f"≥ {format_usd(self.at_least)}"


def prices_of(reader: RunReader, look_up: FindPrice | None = None) -> Prices:
    """The prices of a run. Prices that it did not record are looked up as of the day it was
    created."""
    info = reader.info
    created = datetime.fromtimestamp(info.created, UTC)
    used = {(each["alias"], each.get("model_served")): each for each in reader.run.prices()}
    return Prices(info.config.live_models, created, info.identity.get("prices"), used, look_up)


def cost_rows(
    reader: RunReader, prices: Prices | None = None, *, with_open_batches: bool = True
) -> list[dict[str, Any]]:
    """The `cost` object: calls, tokens and cost by model and role; unknown is null, not zero.

    `usd` is null unless it is fully known; `usd_at_least` is the known part. `unanswered` counts
    requests that got no reply after they were sent: they may have been billed, and do not count as
    calls. The cost of requests that are still with a provider is unknown;
    `with_open_batches=False` leaves them out.
    """
    prices = prices or prices_of(reader)
    known, starts = known_prices(reader, prices)
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in reader.usage.by_model(starts):
        role = row.seat.role
        cell = found.setdefault((row.alias, role), empty_cost_row(row.alias, role))
        add_usage(cell, row, known[row.alias, row.model_served])
    for alias, roles in reader.run.unanswered().items():
        price = prices.of(alias)
        for role, count in roles.items():
            cell = found.setdefault((alias, role), empty_cost_row(alias, role))
            cell["unanswered"] = count
            if price is None or not price.free:
                cell["usd"] = None
    for batch, requests in reader.batches.at_providers() if with_open_batches else ():
        price = prices.of(batch.alias)
        if price is not None and price.free:
            continue
        for role in {Seat.of(request.place.seat).role for request in requests}:
            cell = found.setdefault((batch.alias, role), empty_cost_row(batch.alias, role))
            cell["usd"] = None
            if price is not None:
                cell["usd_at_least"] = cell["usd_at_least"] or 0.0
    return [found[key] for key in sorted(found)]


def stage_cost_rows(
    reader: RunReader, prices: Prices, streams: frozenset[str] = frozenset()
) -> dict[tuple[int, str, str, str], dict[str, Any]]:
    """The same by stage, arm, model and role of a run with the plan evolve; all stages of a stream
    count as stage 1. Unanswered requests have no stage and are not included."""
    known, starts = known_prices(reader, prices)
    found: dict[tuple[int, str, str, str], dict[str, Any]] = {}
    for stage, arm, row in reader.usage.by_stage(starts):
        role = row.seat.role
        key = 1 if arm in streams else stage, arm, row.alias, role
        add_usage(
            found.setdefault(key, empty_cost_row(row.alias, role)),
            row,
            known[row.alias, row.model_served],
        )
    return found


def match_costs(reader: RunReader, numbers: Sequence[int], prices: Prices) -> dict[int, Total]:
    """The cost of some matches. Unanswered requests belong to no match and are not included."""
    usage = reader.usage.of_matches(numbers)
    pairs = {(row.alias, row.model_served) for rows in usage.values() for row in rows}
    known = {pair: prices.of(*pair) for pair in pairs}
    steps = price_steps(known.values())
    if steps:
        usage = reader.usage.of_matches(numbers, steps)
    return {number: total_usage(rows, known) for number, rows in usage.items()}


def total_usage(
    rows: Sequence[UsageRow], known: Mapping[tuple[str, str | None], Price | None]
) -> Total:
    """The cost of some calls at these prices."""
    costs = [known_cost(row, known[row.alias, row.model_served]) for row in rows]
    at_least = sum(usd or 0.0 for usd, _ in costs)
    whole = all(usd is not None and is_whole for usd, is_whole in costs)
    return Total(
        sum(row.calls for row in rows),
        at_least if whole else None,
        at_least if whole or at_least else None,
    )


def price_steps(prices: Iterable[Price | None]) -> list[int]:
    """The call sizes at which prices change."""
    rates = [rate for price in prices if price for rate in price.rates]
    return sorted({rate.above for rate in rates if rate.above > 0})


def known_prices(
    reader: RunReader, prices: Prices
) -> tuple[dict[tuple[str, str | None], Price | None], list[int]]:
    """The price of each served model, and the call sizes at which prices change."""
    known = {pair: prices.of(*pair) for pair in set(reader.usage.models_served())}
    return known, price_steps(known.values())


def add_usage(cell: dict[str, Any], row: UsageRow, price: Price | None) -> None:
    """Add some calls to a row of a `cost` object."""
    cell["calls"] += row.calls
    for name in COUNTS:
        counts = [count for count in (cell[name], getattr(row, name)) if count is not None]
        cell[name] = sum(counts) if counts else None
    usd, whole = known_cost(row, price)
    if usd is not None:
        cell["usd_at_least"] = (cell["usd_at_least"] or 0.0) + usd
    cell["usd"] = cell["usd"] + usd if whole and cell["usd"] is not None else None


def empty_cost_row(alias: str, role: str) -> dict[str, Any]:
    """A row without any calls yet."""
    counts = {"calls": 0, **dict.fromkeys(COUNTS), "unanswered": 0}
    return {"alias": alias, "role": role, **counts, "usd": 0.0, "usd_at_least": None}


def price_rows(reader: RunReader, prices: Prices | None = None) -> list[dict[str, Any]]:
    """The `prices` object: the prices behind the costs, in USD per million tokens, by model and by
    the name that its endpoint reported."""
    prices = prices or prices_of(reader)
    found = (
        (alias, served, prices.of(alias, served)) for alias, served in reader.usage.models_served()
    )
    return [
        {
            "alias": alias,
            "model_served": served,
            **rate._asdict(),
            "source": price.source,
            "as_of": price.as_of or None,
        }
        for alias, served, price in found
        if price is not None and not price.free
        for rate in price.rates
    ]


def known_cost(row: UsageRow, price: Price | None) -> tuple[float | None, bool]:
    """The known cost of some calls, and whether that is all of it."""
    if price is None:
        return None, False
    if price.free:
        return 0.0, True
    usd = price.usd(
        row.tokens_in,
        row.tokens_cached,
        row.tokens_out,
        row.smallest or 0,
        row.tokens_written,
    )
    return (usd if row.partly_counted else None), row.counted == row.calls


def total_cost(rows: Iterable[Mapping[str, Any]]) -> Total:
    """The sum of some rows of a `cost` object."""
    rows = list(rows)
    known = sum(row["usd_at_least"] or 0.0 for row in rows)
    whole = all(row["usd"] is not None for row in rows)
    partly = any(row["usd"] is None and row["usd_at_least"] is not None for row in rows)
    return Total(
        sum(row["calls"] for row in rows),
        known if whole else None,
        known if whole or partly or known else None,
    )


def format_usd(usd: float) -> str:
    """USD for people: cents, or more digits for smaller amounts."""
    return f"{usd:,.2f}" if usd >= 1 or not usd else f"{usd:.4f}" if usd >= 0.0001 else f"{usd:.1e}"


def cost_remarks(rows: list[dict[str, Any]]) -> list[str]:
    """The cost of a run, and the requests that may have cost more; empty if nothing is billed."""
    if not any(row["usd"] is None or row["usd"] for row in rows):
        return []
    aliases = dict.fromkeys(row["alias"] for row in rows)
    each = {alias: total_cost(row for row in rows if row["alias"] == alias) for alias in aliases}
    billed = {alias: sum_ for alias, sum_ in each.items() if sum_.usd is None or sum_.usd}
    whole = total_cost(rows)
    said = (
        "unknown"
        if whole.at_least is None
        else f"{'at least ' if whole.usd is None else ''}{format_usd(whole.at_least)} USD"
    )
    shown = ", ".join(
        f"{alias} {sum_ if sum_.at_least is not None else 'unknown'}"
        for alias, sum_ in list(billed.items())[:8]
    )
    more = f" and {len(billed) - 8} more" if len(billed) > 8 else ""
    lines = [
        f"cost: {said}"
        + (f" for {plural(whole.calls, 'call')}" if whole.calls else "")
        + (f" ({shown}{more})" if len(each) > 1 else "")
    ]
    unanswered = {
        alias: sum(row["unanswered"] for row in rows if row["alias"] == alias) for alias in aliases
    }
    if any(unanswered.values()):
        found = ", ".join(f"{alias} {count}" for alias, count in unanswered.items() if count)
        lines.append(f"some requests got no reply but may have been billed: {found}")
    return lines
