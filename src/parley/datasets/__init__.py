"""Where items come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Dataset:
    """Items that have a name. A module in `benchmarks`, or an entry point of the group
    `parley.datasets`, holds it."""

    name: str
    item_type: type
    count: int  # items, all told
    source: str  # where they come from
    licence: str
    rows: Callable[[], Iterable[Any]]  # in any form of the item type
    # rows that are shown as worked examples, and never asked
    examples: Callable[[], Iterable[Any]] | None = None
    shots: int | None = None  # how many of them are usually shown; None: as many as the task says

    def items(self) -> list[Any]:
        """All items; a different number of them is another edition."""
        from parley.datasets.catalogue import load_dataset

        return load_dataset(self)
