"""What a run has cost so far, by model and role, from its record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from parley.config.prices import Price, Prices
from parley.store.sqlite.reader import Archive

COUNTS = ("tokens_in", "tokens_cached", "tokens_written", "tokens_out", "tokens_reasoning")


class Total(NamedTuple):
    """A sum of which all, a part or nothing may be known."""

    calls: int
    usd: float | None  # None: not all of it is known
    at_least: float | None  # what is known of it; None: nothing

    def __str__(self) -> str:
        if self.usd is not None:
            return money(self.usd)
        return "–" if self.at_least is None else f"≥ {money(self.at_least)}"


def prices_of(archive: Archive) -> Prices:
    """The prices that a run was played at; what it did not keep, as of the day it was made."""
    created = datetime.fromtimestamp(archive.created, UTC)
    used = {(each["alias"], each["served"]): each for each in archive.prices()}
    return Prices(archive.config.asked, created, archive.identity.get("prices"), used)


def costs(archive: Archive, prices: Prices | None = None) -> list[dict[str, Any]]:
    """The `cost` object: calls, tokens and money by model and role; what is unknown is null, not zero.

    `usd` is null unless all of it is known; `usd_at_least` is the part that is. `lost` are requests that broke off after they
    had left: they may have been paid, and are no calls here.
    """
    prices = prices or prices_of(archive)
    served = {(alias, model) for alias, model in archive.named()}
    known = {pair: prices.of(*pair) for pair in served}
    starts = sorted({rate.above for price in known.values() if price for rate in price.rates if rate.above > 0})
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in archive.spending(starts):
        role = row["seat"].rpartition(".")[0] or row["seat"]
        cell = found.setdefault((row["alias"], role), blank(row["alias"], role))
        cell["calls"] += row["calls"]
        for name in COUNTS:
            counts = [count for count in (cell[name], row[name]) if count is not None]
            cell[name] = sum(counts) if counts else None
        usd, whole = spent(row, known[row["alias"], row["model"]])
        if usd is not None:
            cell["usd_at_least"] = (cell["usd_at_least"] or 0.0) + usd
        cell["usd"] = cell["usd"] + usd if whole and cell["usd"] is not None else None
    for alias, roles in archive.lost().items():
        price = prices.of(alias)
        for role, count in roles.items():
            cell = found.setdefault((alias, role), blank(alias, role))
            cell["lost"] = count
            if price is None or not price.free:
                cell["usd"] = None
    return [found[key] for key in sorted(found)]


def blank(alias: str, role: str) -> dict[str, Any]:
    """A row of which nothing is known yet."""
    counts = {"calls": 0, **dict.fromkeys(COUNTS), "lost": 0}
    return {"alias": alias, "role": role, **counts, "usd": 0.0, "usd_at_least": None}


def priced(archive: Archive, prices: Prices | None = None) -> list[dict[str, Any]]:
    """The `prices` object: at what USD per million tokens costs are shown, by model and by the name it was served under."""
    prices = prices or prices_of(archive)
    found = ((alias, served, prices.of(alias, served)) for alias, served in archive.named())
    return [
        {"alias": alias, "model_served": served, **rate._asdict(), "source": price.source, "as_of": price.as_of or None}
        for alias, served, price in found
        if price is not None and not price.free
        for rate in price.rates
    ]


def spent(row: Mapping[str, Any], price: Price | None) -> tuple[float | None, bool]:
    """What is known of the cost of some calls, and whether that is all of it."""
    if price is None:
        return None, False
    if price.free:
        return 0.0, True
    usd = price.usd(row["tokens_in"], row["tokens_cached"], row["tokens_out"], row["least"] or 0, row["tokens_written"])
    return (usd if row["any"] else None), row["counted"] == row["calls"]


def total(rows: Iterable[Mapping[str, Any]]) -> Total:
    """The sum of some rows of a `cost` object."""
    rows = list(rows)
    known = sum(row["usd_at_least"] or 0.0 for row in rows)
    whole = all(row["usd"] is not None for row in rows)
    return Total(sum(row["calls"] for row in rows), known if whole else None, known if whole or known else None)


def money(usd: float) -> str:
    """USD for people: cents, and more digits where there are none."""
    return f"{usd:,.2f}" if usd >= 1 or not usd else f"{usd:.4f}" if usd >= 0.0001 else f"{usd:.1e}"


def remark(rows: list[dict[str, Any]]) -> list[str]:
    """What a run has cost, and which of its requests may have cost more; nothing where nobody sends a bill."""
    if not any(row["usd"] is None or row["usd"] for row in rows):
        return []
    aliases = dict.fromkeys(row["alias"] for row in rows)
    each = {alias: total(row for row in rows if row["alias"] == alias) for alias in aliases}
    billed = {alias: sum_ for alias, sum_ in each.items() if sum_.usd is None or sum_.usd}
    whole = total(rows)
    said = "unknown" if whole.at_least is None else f"{'at least ' if whole.usd is None else ''}{money(whole.at_least)} USD"
    shown = ", ".join(f"{alias} {sum_ if sum_.at_least is not None else 'unknown'}" for alias, sum_ in list(billed.items())[:8])
    more = f" and {len(billed) - 8} more" if len(billed) > 8 else ""
    lines = [f"cost: {said} for {whole.calls:,} calls" + (f" ({shown}{more})" if len(each) > 1 else "")]
    lost = {alias: sum(row["lost"] for row in rows if row["alias"] == alias) for alias in aliases}
    if any(lost.values()):
        found = ", ".join(f"{alias} {count}" for alias, count in lost.items() if count)
        lines.append(f"requests that broke off on the way and may have been paid without a reply: {found}")
    return lines
