"""Before a request leaves: whoever counts requests is told here, and whoever bounds them refuses here."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

# Called before every single request, further tries too; raises Halted where it must not leave.
SPEND: ContextVar[Callable[[], None]] = ContextVar("spend", default=lambda: None)
# Called when a request broke off after it had left: it may have been paid, although it is tried again.
LOST: ContextVar[Callable[[], None]] = ContextVar("lost", default=lambda: None)
