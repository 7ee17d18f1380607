"""Load datasets from the Hugging Face Hub with the optional `datasets` library."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from parley.errors import UsageError


def load_hub_rows(
    name: str, edition: str, *splits: str, revision: str | None = None
) -> Iterator[dict[str, Any]]:
    """The rows of one or more splits of a dataset, one split after the other."""
    if find_spec("datasets") is None:
        raise UsageError(
            f"{name} comes from the Hugging Face Hub and needs the package `datasets`: run pip "
            'install "parley-eval[datasets]", or download the file yourself and use --dataset '
            "PATH"
        )
    import datasets

    for split in splits:
        try:
            found = datasets.load_dataset(
                name, edition, split=split, **({"revision": revision} if revision else {})
            )
        except Exception as wrong:  # the library passes on exceptions of any kind
            said = re.sub(r"\S*://\S+", "[address]", str(wrong)).partition("\n")[0][:200]
            raise UsageError(
                f"{name} ({edition}, {split}) could not be loaded from the Hugging Face Hub "
                f"({type(wrong).__name__}: {said}): check your connection, or download the file "
                "yourself and use --dataset PATH"
            ) from wrong
        yield from map(dict, found)
