"""Datasets: where items come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Dataset:
    """A named dataset. It is defined in a module of `benchmarks`, or by an entry point of the group
    `parley.datasets`."""

    name: str
    item_type: type
    count: int  # number of items
    source: str  # where the items come from
    licence: str
    rows: Callable[[], Iterable[Any]]  # in any form of the item type
    # rows to show as worked examples; they are never asked
    examples: Callable[[], Iterable[Any]] | None = None
    shots: int | None = None  # usual number of worked examples; None: the task's default

    def items(self) -> list[Any]:
        """All items. Raises UsageError if their number is not `count`."""
        from parley.datasets.catalogue import load_dataset

        return load_dataset(self)
