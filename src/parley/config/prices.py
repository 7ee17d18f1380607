"""What tokens cost: by a price file of the user's own, else by what is publicly known. Unknown is unknown, never zero."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from parley.config.yaml_file import Marked
from parley.errors import UsageError
from parley.participants._registry import kinds, named
from parley.providers import _registry as providers
from parley.providers._secrets import expanded, setting

MILLION = 1_000_000
FREE = ("bot", "scripted", "human")  # what is no model
RENAMED = {"grok": "x-ai", "xai": "x-ai"}  # sellers that inspect-ai names otherwise than public lists do
DEAREST = 1e9  # USD per million tokens: what goes beyond is no price
USD = {"title": "a number of USD per million tokens, 0 or more", "type": "number", "minimum": 0}
FORM = {
    "type": "object",
    "title": "prices as MODEL: {input: USD, output: USD}",
    "additionalProperties": {
        "title": "{input: USD, cached_input: USD, written_input: USD, output: USD} per million tokens, or free",
        "type": "object",
        "required": ["input", "output"],
        "additionalProperties": False,
        "properties": {"input": USD, "cached_input": USD, "written_input": USD, "output": USD},
    },
}


class Rate(NamedTuple):
    """USD per million tokens, for calls with more input tokens than this."""

    above: int
    input: float
    cached_input: float
    output: float
    written_input: float | None = None  # for what is written to a cache; None: as other input

    @property
    def written(self) -> float:
        return self.input if self.written_input is None else self.written_input

    @property
    def free(self) -> bool:
        return not (self.input or self.cached_input or self.written or self.output)


@dataclass(frozen=True)
class Price:
    """What a model's tokens cost. Reasoning is part of the output, what a cache gave or was given is part of the input."""

    rates: tuple[Rate, ...]  # by size of the call, the smallest first
    source: str  # a file's name, public, or free
    as_of: str = ""  # the day, and the release of the list that it stood in

    @classmethod
    def flat(
        cls, input: float, output: float, cached_input: float | None = None, written_input: float | None = None, **known: str
    ) -> Price:
        return cls((Rate(-1, input, input if cached_input is None else cached_input, output, written_input),), **known)

    @classmethod
    def kept(cls, found: Mapping[str, Any]) -> Price:
        """A price as a run keeps it."""
        return cls(tuple(Rate(*rate) for rate in found["rates"]), str(found["source"]), str(found.get("as_of", "")))

    @property
    def facts(self) -> dict[str, Any]:
        """As a run keeps it."""
        return {"rates": [list(rate) for rate in self.rates], "source": self.source, "as_of": self.as_of}

    @property
    def free(self) -> bool:
        return all(rate.free for rate in self.rates)

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
        """What is known of the cost of calls, each with about `size` input tokens; what was not counted adds nothing."""
        rate, into = self.rate((tokens_in or 0) if size is None else size), tokens_in or 0
        read = min(cached or 0, into)
        kept = min(written or 0, into - read)
        input = (into - read - kept) * rate.input + read * rate.cached_input + kept * rate.written
        return (input + (tokens_out or 0) * rate.output) / MILLION

    def most(self, tokens_in: float, tokens_out: float) -> float:
        """The most that a call of at most so many tokens can cost."""
        reached = [rate for rate in self.rates if tokens_in > rate.above]
        into = max(max(rate.input, rate.cached_input, rate.written) for rate in reached)
        return (tokens_in * into + tokens_out * max(rate.output for rate in reached)) / MILLION


NOTHING = Price.flat(0, 0, source="free")


class Prices:
    """The prices of a run's models: those that it was played at, else as a file here says, or as publicly known."""

    def __init__(
        self,
        models: Mapping[str, Mapping[str, Any]],
        on: datetime | None = None,
        kept: Mapping[str, Mapping[str, Any]] | None = None,
        used: Mapping[tuple[str, str | None], Mapping[str, Any]] | None = None,
    ) -> None:
        """`kept` are those that the run began with, by alias; `used` those by the names that were really served."""
        self._models, self._on, self._kept, self._used = models, on, kept or {}, used or {}
        self._found: dict[tuple[str, str | None], Price | None] = {}

    @cached_property
    def _own(self) -> dict[str, Price]:
        return own()

    def of(self, alias: str, served: str | None = None) -> Price | None:
        """The price of a model, by the name under which it was really served where that is known; None: unknown."""
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
        for key in (alias, f"{family}/{served}", f"{family}/{name}"):
            if key in self._own:
                return self._own[key]
        with suppress(UsageError):  # a provider that cannot be loaded any more is no reason not to show what was played
            if providers.known(family) and providers.traits(family).unbilled:
                return NOTHING
        better = public(family, served, options, self._on) if served and served != name else None
        return better or kept or public(family, name, options, self._on)

    def keep(self) -> dict[str, dict[str, Any]]:
        """What is known by the names that were asked for, to stand in the run."""
        found = {alias: self.of(alias) for alias in self._models}
        return {alias: price.facts for alias, price in found.items() if price is not None and price is not NOTHING}

    def used(self, served: Iterable[tuple[str, str | None]]) -> list[dict[str, Any]]:
        """What is known by the names that were served, to stand in the run."""
        found = [(alias, name, self.of(alias, name)) for alias, name in served if not is_free(self._models[alias])]
        return [{"alias": alias, "served": name, **price.facts} for alias, name, price in found if price is not None]

    def model(self, alias: str) -> str:
        return str(self._models[alias]["model"])

    def unknown(self) -> list[str]:
        """Aliases whose price nobody knows."""
        return [alias for alias in self._models if self.of(alias) is None]


def is_free(options: Mapping[str, Any]) -> bool:
    """Whether a participant is no model at all."""
    return str(options["model"]).partition("/")[0] in FREE


def place() -> Path:
    """Where a user's own prices stand."""
    return Path(os.environ.get("PARLEY_PRICES") or "prices.yaml").expanduser()


def own() -> dict[str, Price]:
    """The user's own prices, by alias or PROVIDER/NAME."""
    if not os.environ.get("PARLEY_PRICES") and not place().exists():
        return {}
    file = Marked(place())
    file.data = {key: {"input": 0, "output": 0} if value == "free" else value for key, value in file.data.items()}
    file.check(FORM)
    for key in file.data:
        if "/" in key:
            with file.at(key):
                named(f"x={key}")
    for key, rates in file.data.items():
        for name, usd in rates.items():
            if not usd <= DEAREST:  # nan is below nothing and above nothing, so that no schema sees it
                raise file.fault((key, name), f"wanted {USD['title']}, found {usd}")
    return {key: Price.flat(**rates, source=file.path.name, as_of=day(None)) for key, rates in file.data.items()}


def day(moment: datetime | None) -> str:
    """The day of a moment; of this one, where none is given."""
    return f"{moment or datetime.now(UTC):%Y-%m-%d}"


def writes(options: Mapping[str, Any]) -> bool:
    """Whether prompts are written to a cache, which some charge for: as a model's options say, where they are asked."""
    asked = str(options.get("cache", True)).lower() not in ("false", "0", "no")
    return asked and str(options["model"]).startswith("anthropic/")


def public(family: str, name: str, options: Mapping[str, Any], on: datetime | None) -> Price | None:
    """The publicly known price of a model, from genai-prices; by its seller, or by the address where it is served."""
    if family in kinds():
        return None
    with suppress(UsageError):  # a reference that leads nowhere is refused where the model is made
        traits, address = providers.traits(family), ""
        seller = traits.seller
        if family == "inspect":  # which passes PROVIDER/NAME on
            family, _, name = name.partition("/")
            seller = RENAMED.get(family, providers.traits(family).seller if providers.known(family) else family)
        if seller is None:
            home = traits.home_env
            address = expanded(str(options.get("base_url") or "")) or (setting(home) if home else "") or ""
            if not address.startswith("https://"):
                return None  # a server of one's own
        written = family != "anthropic" or writes({**options, "model": f"{family}/{name}"})
        return listed(seller, address, expanded(name).removeprefix("models/"), written, on)
    return None


@cache
def listed(seller: str | None, address: str, name: str, written: bool, on: datetime | None) -> Price | None:
    """A price as genai-prices lists it; what is written to a cache may cost more, where prompts are `written` to one."""
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    try:
        if seller:
            found = calc_price(Usage(), name, provider_id=seller, genai_request_timestamp=on)
        else:
            found = calc_price(Usage(), name, provider_api_url=address, genai_request_timestamp=on)
    except (LookupError, ValueError):
        return None
    prices = found.model_price
    input, output, cached = prices.input_mtok, prices.output_mtok, prices.cache_read_mtok
    kept = prices.cache_write_mtok if written else None
    if input is None or output is None:
        return None
    cached = input if cached is None else cached
    starts = {tier.start for price in (input, output, cached, kept) for tier in getattr(price, "tiers", ())}
    rates = [
        Rate(start, at(input, start), at(cached, start), at(output, start), None if kept is None else at(kept, start))
        for start in sorted({-1, *starts})
    ]
    return Price(tuple(rates), "public", f"{day(on)}, genai-prices {version('genai-prices')}")


def at(price: Any, start: int) -> float:
    """A price for calls with more than so many tokens."""
    reached = [tier.price for tier in getattr(price, "tiers", ()) if tier.start <= start]
    return float(reached[-1] if reached else getattr(price, "base", price))


def billed(options: Mapping[str, Any], price: Price | None) -> bool:
    """Whether somebody is likely to send a bill: a price is known, or a key is needed where none is."""
    family = str(options["model"]).partition("/")[0]
    if price is not None:
        return not price.free
    return family not in kinds() and providers.traits(family).key_needed
