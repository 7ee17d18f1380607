"""Prices that a run did not record, from the user's price file or the public list."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

from parley.config.prices import PriceList
from parley.money import Price


@cache
def read_price_list() -> PriceList:
    """The price list, read once for all pages."""
    return PriceList()


def known_price(
    alias: str, options: Mapping[str, Any], served: str | None, on: datetime | None
) -> Price | None:
    """The price of a model; None if it is unknown."""
    return read_price_list().find(alias, options, served, on)
