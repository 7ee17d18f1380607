"""The argument that a bot is called with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from random import Random
from typing import Any, NamedTuple

from parley.rules.pool import View
from parley.rules.readers import ReplyText

# the format of `Referee.quote`
QUOTED = re.compile(r"\[([0-9a-f]{12}): ([\w ]+) said[^]]*\]\n(.*?)\n\[/\1\]", re.DOTALL)


class BotView(NamedTuple):
    """A seat's view and, for bots only, the item. Tests use it to plant abilities."""

    view: View
    task: Any
    item: Any
    rng: Random
    works: Mapping[str, Any] = {}

    def fate(self, *what: object) -> float:
        """A random number between 0 and 1 that is fixed for this item and these values. Bots
        compare it with their ability."""
        text = "|".join(map(str, (*what, getattr(self.item, "id", ""))))
        return int.from_bytes(blake2b(text.encode(), digest_size=4).digest()) / 2**32

    def explain(self, value: Any, reason: str) -> ReplyText:
        """A reply that reads as this value, with a reason if the form has room for one."""
        return ReplyText(self.view.expect.write(value, reason))

    @property
    def quoted(self) -> list[tuple[str, str]]:
        """The quotations shown to this seat so far: speaker and text, in order."""
        told = "\n".join(turn["content"] for turn in self.view if turn["role"] == "user")
        return [(who, said) for _, who, said in QUOTED.findall(told)]
