"""Looks up prices: in the user's own price file, or else in the public list."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from parley.config import models_file
from parley.config.batch_api import uses_batch_api
from parley.config.yaml_file import YamlFile
from parley.errors import UsageError
from parley.money import NOTHING, Price, Prices, Rate
from parley.participants._registry import parse_model_name, participant_kinds
from parley.providers import _registry as providers
from parley.providers._env_file import find_setting
from parley.providers._secrets import expand_references
from parley.providers._traits import Traits

# sellers whose names in inspect-ai differ from those in public lists
RENAMED = {"grok": "x-ai", "xai": "x-ai"}
DEAREST = 1e9  # USD per million tokens: anything above is not a price
USD = {"title": "a number of USD per million tokens, 0 or more", "type": "number", "minimum": 0}
RATES = {"input": USD, "cached_input": USD, "written_input": USD, "output": USD}


class OwnPrice(NamedTuple):
    """A price of the user's own: for ordinary calls, and for those through a batch interface."""

    usual: Price
    batch: Price

    def of(self, options: Mapping[str, Any]) -> Price:
        return self.batch if uses_batch_api(options) else self.usual


FORM = {
    "type": "object",
    "title": "prices as MODEL: {input: USD, output: USD}",
    "additionalProperties": {
        "title": (
            "{input: USD, cached_input: USD, written_input: USD, output: "
            "USD} per million tokens, or free"
        ),
        "type": "object",
        "required": ["input", "output"],
        "additionalProperties": False,
        "properties": {
            **RATES,
            "batch": {
                "title": "{input: USD, cached_input: USD, written_input: USD, output: USD}",
                "type": "object",
                "required": ["input", "output"],
                "additionalProperties": False,
                "properties": RATES,
            },
        },
    },
}


class PriceList:
    """Finds prices that no run has recorded: in the user's own file, which is read once, or else in
    the public list."""

    @cached_property
    def _own(self) -> dict[str, OwnPrice]:
        return own_prices()

    def __init__(self, models: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """`models`: those of a run; another alias of the same model may have a price."""
        self._models = models or {}
        # by provider: a search through installed packages
        self._traits: dict[str, Traits] = {}

    def find(
        self, alias: str, options: Mapping[str, Any], served: str | None, on: datetime | None
    ) -> Price | None:
        """The price of a model, by the name that its endpoint reported if there is one; None if
        unknown. The copy of an alias has the price of the alias."""
        family, _, name = str(options.get("model", "")).partition("/")
        for key in (alias, f"{family}/{served}", f"{family}/{name}"):
            if key in self._own:
                return self._own[key].of(options)
        copied = bool(self._own) and family not in participant_kinds()
        known = {**models_file.shared_models(), **self._models} if copied else {}
        for other, model in known.items():
            if other in self._own and same_service(model, options):
                return self._own[other].of(options)
        if family not in self._traits:
            self._traits[family] = find_traits(family)
        if self._traits[family].is_unbilled(options):
            return NOTHING
        price = public_price(family, served or name, options, on)
        return price.halved() if price is not None and uses_batch_api(options) else price


def find_traits(family: str) -> Traits:
    """The traits of a provider. Results can be shown even if it can no longer be loaded."""
    with suppress(UsageError):
        return providers.find_traits(family)
    return Traits()


def prices_for(models: Mapping[str, Mapping[str, Any]]) -> Prices:
    """The prices of the models of a new run."""
    return Prices(models, look_up=PriceList(models).find)


def same_service(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two entries name the same model at the same address."""
    return all(one.get(key) == other.get(key) for key in ("model", "base_url"))


def prices_path() -> Path:
    """The user's own price file."""
    return Path(os.environ.get("PARLEY_PRICES") or "prices.yaml").expanduser()


def own_prices() -> dict[str, OwnPrice]:
    """The user's own prices, by alias or PROVIDER/NAME."""
    if not os.environ.get("PARLEY_PRICES") and not prices_path().exists():
        return {}
    file = YamlFile(prices_path())
    file.data = {
        key: {"input": 0, "output": 0} if value == "free" else value
        for key, value in file.data.items()
    }
    file.check(FORM)
    for key in file.data:
        if "/" in key:
            with file.errors_at(key):
                parse_model_name(f"x={key}")
    for key, rates in file.data.items():
        batch = rates.get("batch", {})
        for name, usd in [
            *((key, each) for key, each in rates.items() if key != "batch"),
            *batch.items(),
        ]:
            # nan compares false with everything, so the schema accepts it
            if not usd <= DEAREST:
                raise file.error((key, name), f"expected {USD['title']}, found {usd}")
    return {key: own_price(rates, file.path.name) for key, rates in file.data.items()}


def own_price(entry: Mapping[str, Any], source: str) -> OwnPrice:
    """The price in an entry of the user's file. Batches cost half if the entry does not say."""
    known: dict[str, Any] = {"source": source, "as_of": format_day(None)}
    usual = Price.flat(**{name: usd for name, usd in entry.items() if name != "batch"}, **known)
    return OwnPrice(
        usual, Price.flat(**entry["batch"], **known) if "batch" in entry else usual.halved()
    )


def format_day(moment: datetime | None) -> str:
    """The day of a moment, by default of now."""
    return f"{moment or datetime.now(UTC):%Y-%m-%d}"


def writes_cache(options: Mapping[str, Any]) -> bool:
    """Whether a model writes prompts to a cache, which some providers bill."""
    asked = str(options.get("cache", True)).lower() not in ("false", "0", "no")
    return asked and str(options["model"]).startswith("anthropic/")


def public_price(
    family: str, name: str, options: Mapping[str, Any], on: datetime | None
) -> Price | None:
    """The public price of a model, from genai-prices, by its seller or its address."""
    if family in participant_kinds():
        return None
    with suppress(UsageError):  # a wrong reference is reported when the model is created
        traits, address = providers.provider_traits(family), ""
        seller = traits.seller
        if family == "inspect":  # which passes PROVIDER/NAME on
            family, _, name = name.partition("/")
            seller = RENAMED.get(
                family,
                providers.provider_traits(family).seller
                if providers.is_provider(family)
                else family,
            )
        if seller is None:
            home = traits.home_env
            address = (
                expand_references(str(options.get("base_url") or ""))
                or (find_setting(home) if home else "")
                or ""
            )
            if not address.startswith("https://"):
                return None  # the user's own server
        written = family != "anthropic" or writes_cache({**options, "model": f"{family}/{name}"})
        return listed_price(
            seller, address, expand_references(name).removeprefix("models/"), written, on
        )
    return None


@cache
def listed_price(
    seller: str | None, address: str, name: str, written: bool, on: datetime | None
) -> Price | None:
    """A price as genai-prices lists it; `written`: whether prompts are written to a cache, which
    may cost more."""
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
    starts = {
        tier.start
        for price in (input, output, cached, kept)
        for tier in getattr(price, "tiers", ())
    }
    rates = [
        Rate(
            start,
            price_at(input, start),
            price_at(cached, start),
            price_at(output, start),
            None if kept is None else price_at(kept, start),
        )
        for start in sorted({-1, *starts})
    ]
    return Price(
        tuple(rates), "public", f"{format_day(on)}, genai-prices {version('genai-prices')}"
    )


def price_at(price: Any, start: int) -> float:
    """The price for calls with more than `start` tokens."""
    reached = [tier.price for tier in getattr(price, "tiers", ()) if tier.start <= start]
    return float(reached[-1] if reached else getattr(price, "base", price))


def is_billed(options: Mapping[str, Any], price: Price | None) -> bool:
    """Whether calls are likely to be billed: the model has a price, or its provider needs a key."""
    family = str(options["model"]).partition("/")[0]
    if price is not None:
        return not price.free
    return family not in participant_kinds() and providers.provider_traits(family).key_needed
