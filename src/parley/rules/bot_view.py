"""What a bot sees when it is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from random import Random
from typing import Any, NamedTuple

from parley.rules.pool import View
from parley.rules.readers import ReplyText

# as a referee quotes
QUOTED = re.compile(r"\[([0-9a-f]{12}): ([\w ]+) said[^]]*\]\n(.*?)\n\[/\1\]", re.DOTALL)


class BotView(NamedTuple):
    """What a bot decides by: its view, and the item, which only bots may see. That is how a test
    plants abilities."""

    view: View
    task: Any
    item: Any
    rng: Random
    works: Mapping[str, Any] = {}

    def fate(self, *what: object) -> float:
        """A number between 0 and 1 that is always the same for this item and these values; bots use
        it to have an ability."""
        text = "|".join(map(str, (*what, getattr(self.item, "id", ""))))
        return int.from_bytes(blake2b(text.encode(), digest_size=4).digest()) / 2**32

    def explain(self, value: Any, reason: str) -> ReplyText:
        """The reply that reads as this value, with a reason where the form has room for one."""
        return ReplyText(self.view.expect.write(value, reason))

    @property
    def quoted(self) -> list[tuple[str, str]]:
        """Whom the referee has quoted to this seat so far, and with what, in order."""
        told = "\n".join(turn["content"] for turn in self.view if turn["role"] == "user")
        return [(who, said) for _, who, said in QUOTED.findall(told)]
