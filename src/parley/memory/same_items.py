"""Which items are the same, by their words. Case, punctuation and order of choices are ignored."""

from __future__ import annotations

from parley.datasets.open_references import fold_text


class ItemNumbers:
    """Gives equal numbers to equal items. An item without words is compared by its id."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}

    def number(self, item: str, cue: str, foreign: bool = False) -> int:
        """The number of an item; `foreign`: of another run, whose ids mean nothing here."""
        lines = tuple(sorted(filter(None, map(fold_text, cue.splitlines()))))
        key: object = lines or (item, foreign)
        return self._numbers.setdefault(key, len(self._numbers))
