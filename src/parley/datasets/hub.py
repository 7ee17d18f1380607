"""Datasets of the hub, through the `datasets` library, which is an extra."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from parley.errors import UsageError


def load_hub_rows(
    name: str, edition: str, *splits: str, revision: str | None = None
) -> Iterator[dict[str, Any]]:
    """The rows of some splits of a dataset, one split after the other."""
    if find_spec("datasets") is None:
        raise UsageError(
            f"{name} comes from the hub and needs the datasets library: pip install "
            f'"parley-eval[datasets]"; '
            "or bring the file and name it: --dataset PATH"
        )
    import datasets

    for split in splits:
        try:
            found = datasets.load_dataset(
                name, edition, split=split, **({"revision": revision} if revision else {})
            )
        except Exception as wrong:  # the library raises whatever is below it raises
            said = re.sub(r"\S*://\S+", "[address]", str(wrong)).partition("\n")[0][:200]
            raise UsageError(
                f"{name} ({edition}, {split}) cannot be had from the hub: "
                f"{type(wrong).__name__}: {said}; "
                "see that the hub can be reached, or bring the file and name it: --dataset PATH"
            ) from wrong
        yield from map(dict, found)
