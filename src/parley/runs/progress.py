"""The progress of a run, and the signal to stop it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from parley.errors import Halted
from parley.providers._secrets import redact


@dataclass
class Progress:
    """The progress of a run, for whatever displays it."""

    planned: int = 0
    done: int = 0
    failed: int = 0
    in_flight: int = 0
    calls: int = 0
    location: str = ""  # the run's file, once there is one
    status_line: str = ""  # what the plan says about how far it has come
    began: float = field(default_factory=time.monotonic)
    notices: list[str] = field(default_factory=list)
    # by alias: when the calls in progress began
    waiting: dict[str, dict[int, float]] = field(default_factory=dict)
    _notified: set[str] = field(default_factory=set)

    def notify(self, text: str) -> None:
        """Show a notice to the user. Each text is shown once, with API keys masked."""
        if (text := redact(text)) and text not in self._notified:
            self._notified.add(text)
            self.notices.append(text)

    def slowest(self) -> tuple[str, float] | None:
        """The alias with the oldest call in progress, and the age of that call in seconds."""
        began = [(min(since.values()), alias) for alias, since in self.waiting.items() if since]
        return (min(began)[1], time.monotonic() - min(began)[0]) if began else None


class StopSignal:
    """Stops a run gently: calls in progress finish and are recorded, no new ones begin."""

    def __init__(self) -> None:
        self.reason, self.status = "", "interrupted"
        self.limit = ""  # the option whose limit was reached
        self.needed = 0.0  # what the next request takes of it

    def stop(
        self, reason: str, status: str = "interrupted", limit: str = "", needed: float = 0.0
    ) -> Halted:
        """Stop the run. If it is stopping already, the first reason stays."""
        if not self.reason:
            self.reason, self.status, self.limit, self.needed = reason, status, limit, needed
        return Halted(reason, limit=limit, needed=needed)

    def check(self) -> None:
        """Raise `Halted` if the run is stopping."""
        if self.reason:
            raise Halted(self.reason, limit=self.limit, needed=self.needed)
