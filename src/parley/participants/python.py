"""A function in a seat: from the view to a reply, plain or async."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from parley.errors import Halted, ParticipantError, UsageError
from parley.parameters import keywords
from parley.pool import View
from parley.providers.protocol import Reply
from parley.task import Task


class Python:
    """Calls a function with the view; a plain one runs in a thread, so that it may take its time."""

    privy: ClassVar[bool] = False

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any], name: str) -> None:
        self._function, self._name = function, name
        self._options = keywords(function, options, "option of", name) if options else {}
        call = function if inspect.isroutine(function) else type(function).__call__
        self._waits = inspect.iscoroutinefunction(call)

    async def reply(self, view: View) -> Reply | str:
        try:
            if self._waits:
                said = await self._function(view, **self._options)
            else:
                said = await asyncio.to_thread(self._function, view, **self._options)
                if inspect.isawaitable(said):
                    said = await said
        except (ParticipantError, Halted):
            raise
        except Exception as wrong:
            raise ParticipantError(f"{self._name}: the function failed: {type(wrong).__name__}: {wrong}") from wrong
        if isinstance(said, bytes):
            return said.decode("utf-8", "replace")
        if not isinstance(said, str | Reply):
            raise ParticipantError(f"{self._name}: the function must return a text, not {type(said).__name__}")
        return said

    async def close(self) -> None:
        pass


def make(name: str, options: Mapping[str, Any], task: type[Task]) -> Python:
    """`package.module:function`, importable from the current folder too."""
    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise UsageError(f"python/{name}: wanted python/package.module:function")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        function: Any = import_module(module)
        for part in attribute.split("."):
            function = getattr(function, part)
    except Exception as wrong:
        raise UsageError(f"python/{name} cannot be imported: {type(wrong).__name__}: {wrong}") from None
    if not callable(function):
        raise UsageError(f"python/{name} is not a function, but {type(function).__name__}")
    return Python(function, options, f"python/{name}")
