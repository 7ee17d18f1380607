"""Who sets the pace of requests, counts them and bounds them: is asked before every single one,
further tries too."""

from __future__ import annotations

from contextvars import ContextVar


class Meter:
    """Watches over the requests of one call. This one lets all of them leave.

    Who sends requests awaits `turn`, then `leaves`, and sends. Afterwards a request is answered, or
    it was `refused`, or `lost`.
    """

    __slots__ = ()

    async def turn(self) -> None:
        """Wait until the pace allows one more request."""

    async def leaves(self) -> None:
        """A request leaves now; raises Halted where none may."""

    def rests(self, waits: bool) -> None:
        """A call begins to wait for an endpoint that is down, or does so no longer; may be said
        more than once."""

    def refused(self, fault: str = "") -> None:
        """It was not taken, and so nothing is paid for it."""

    def lost(self, fault: str = "") -> None:
        """It broke off after it had left: it may have been paid, although no answer came."""


METER: ContextVar[Meter] = ContextVar("meter", default=Meter())  # noqa: B039 - it holds nothing
