"""A Python function in a seat, plain or async: takes the view and returns a reply."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson

from parley.errors import ParticipantError, UsageError, file_name
from parley.match.protocol import Call, Reply
from parley.match.threads import in_daemon_thread
from parley.participants._guard import ErrorsAsParticipant, file_of_function
from parley.providers._replies import check_reply
from parley.rules.parameters import parse_keywords
from parley.rules.pool import View
from parley.rules.task import Task


class Python:
    """Calls a function with the view; a plain one runs in a thread, so that it may block."""

    sees_item: bool = False

    def __init__(
        self,
        function: Callable[..., Any],
        options: Mapping[str, Any],
        name: str,
        is_alias: bool = False,
    ) -> None:
        if inspect.isclass(function):
            raise UsageError(
                f"{name} is a class: use a function, or an instance that can be called"
            )
        call = function if inspect.isroutine(function) else function.__call__  # type: ignore[operator]
        self._function, self._home = function, file_of_function(call)
        # errors of a call have the alias before them already
        self._who = "the function" if is_alias else f"{name}: the function"
        self._options = parse_keywords(call, options, "option of", name) if options else {}
        self._waits = inspect.iscoroutinefunction(call)

    async def reply(self, view: View, call: Call) -> Reply | str:
        with ErrorsAsParticipant(self._who, home=self._home, kind="code"):
            if self._waits:
                said = await self._function(view, **self._options)
            else:
                said = await in_daemon_thread(self._function, view, **self._options)
                if inspect.isawaitable(said):
                    said = await said
            if isinstance(said, Mapping):
                return orjson.dumps(dict(said), default=str).decode()
            if isinstance(said, bytes):
                return said.decode("utf-8", "replace")
            return said if isinstance(said, str) else self._check(said)

    def _check(self, said: Any) -> Reply:
        """Check a reply that is not a text; the wrong type is an error in the user's code."""
        where = f" ({name_function(self._function, self._home)})"
        if not isinstance(said, Reply):
            raise ParticipantError(
                f"{self._who} must return a text, a dict with the fields of the reply, or a "
                f"parley.match.protocol.Reply, not {type(said).__name__}{where}",
                kind="code",
            )
        try:
            return check_reply(said, self._who)
        except ParticipantError as wrong:
            raise ParticipantError(f"{wrong}{where}", kind="code") from None

    async def close(self) -> None:
        pass


def name_function(function: Any, home: str | None) -> str:
    """The name of a function, with its file and line."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    code = getattr(inspect.unwrap(getattr(function, "func", function)), "__code__", None)
    line = f", line {code.co_firstlineno}" if code is not None else ""
    return f"{name} in {file_name(home)}{line}" if home else name


def make(name: str, options: Mapping[str, Any], task: type[Task]) -> Python:
    """`package.module:function`, importable from the current folder too."""
    return Python(load_function(name, "python/"), options, f"python/{name}")


def load_function(
    name: str,
    what: str,
    folder: Path | None = None,
    load: Callable[[str], ModuleType] = import_module,
) -> Callable[..., Any]:
    """Import the function `package.module:function`, from `folder` or the current folder too."""
    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise UsageError(f"{what}{name} must have the form {what}package.module:function")
    for here in (Path.cwd(), folder):
        if here is not None and str(here) not in sys.path:
            sys.path.insert(0, str(here))
    try:
        function: Any = load(module)
        for part in attribute.split("."):
            function = getattr(function, part)
    except UsageError:
        raise
    except (Exception, SystemExit) as wrong:
        hint = (
            "; if the function was defined in a script, pass it again from Python with "
            "parley.resume(RUN, functions={ALIAS: function})"
        )
        own = module == "__main__" or "<" in attribute
        fault = f"{type(wrong).__name__}: {wrong}" + (hint if own else "")
        raise UsageError(f"{what}{name} cannot be imported: {fault}") from None
    if not callable(function):
        raise UsageError(f"{what}{name} must be a function, not {type(function).__name__}")
    found: Callable[..., Any] = function
    return found
