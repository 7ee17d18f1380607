"""What ends a command early: Ctrl-C, SIGTERM, and SIGHUP, with which its terminal is closed."""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


def call_when_interrupted(
    loop: AbstractEventLoop, interrupt: Callable[[], None], is_stopping: Callable[[], bool]
) -> None:
    """Call a function for each Ctrl-C or SIGTERM, but only once for SIGHUP: if a terminal is
    closed, the shell and the system may both send it, and the command still waits for its calls."""

    def hang_up() -> None:
        detach_terminal()
        if not is_stopping():
            interrupt()

    with suppress(NotImplementedError):  # Windows: KeyboardInterrupt ends the command
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signum, interrupt)
        if ends_on_hangup():
            loop.add_signal_handler(signal.SIGHUP, hang_up)


def interrupt_on_hangup() -> None:
    """Let SIGHUP end a command as Ctrl-C does."""

    def hang_up(*_: Any) -> None:
        detach_terminal()
        raise KeyboardInterrupt

    if ends_on_hangup():
        signal.signal(signal.SIGHUP, hang_up)


def ends_on_hangup() -> bool:
    """Whether SIGHUP ends this command: `nohup` starts commands that ignore it, and only the main
    thread receives signals."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    has_it = in_main_thread and hasattr(signal, "SIGHUP")
    return has_it and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN


def detach_terminal() -> None:
    """Replace the closed terminal by the null device: to write to it would be an error."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        with suppress(OSError):
            if stat.S_ISCHR(os.fstat(number).st_mode):
                os.dup2(null, number)
    os.close(null)
