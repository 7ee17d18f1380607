"""How a run stands, and the signal to stop it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from parley.errors import Halted
from parley.providers._secrets import redacted

if TYPE_CHECKING:
    pass


@dataclass
class Tally:
    """How a run stands, for whoever shows it."""

    planned: int = 0
    done: int = 0
    aborted: int = 0
    failed: int = 0
    in_flight: int = 0
    calls: int = 0
    place: str = ""  # the run's file, once there is one
    outlook: str = ""  # how far the plan has come, where more than counting is to be said
    began: float = field(default_factory=time.monotonic)
    notices: list[str] = field(default_factory=list)
    # by alias: since when calls are under way
    waiting: dict[str, dict[int, float]] = field(default_factory=dict)
    _heard: set[str] = field(default_factory=set)

    def hear(self, text: str) -> None:
        """Take a notice to the person, once however often it is given, and without any key."""
        if (text := redacted(text)) and text not in self._heard:
            self._heard.add(text)
            self.notices.append(text)

    def slowest(self) -> tuple[str, float] | None:
        """Who has been waited for longest, and for how many seconds."""
        began = [(min(since.values()), alias) for alias, since in self.waiting.items() if since]
        return (min(began)[1], time.monotonic() - min(began)[0]) if began else None


class Brake:
    """Stops a run gently: calls in flight are awaited and recorded, nothing new is asked."""

    def __init__(self) -> None:
        self.reason, self.status = "", "interrupted"
        self.limit = ""  # the option whose bound was reached
        self.needed = 0.0  # what the next request takes of it

    def pull(
        self, reason: str, status: str = "interrupted", limit: str = "", needed: float = 0.0
    ) -> Halted:
        """Stop, unless something has stopped it already."""
        if not self.reason:
            self.reason, self.status, self.limit, self.needed = reason, status, limit, needed
        return Halted(reason, limit=limit, needed=needed)

    def gate(self) -> None:
        if self.reason:
            raise Halted(self.reason, limit=self.limit, needed=self.needed)
