"""The shells of a run, by name: each starts with its first request, and all are closed together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from parley.errors import TaskError
from parley.sandbox.limits import Limits
from parley.sandbox.shell import HOME, SHELL, Shell

KEYS = {"kind", "shell", "do", "command", "arguments", "language", "live", "proc", "timeout",
        "home", "folder"}  # fmt: skip
DOES = ("prepare", "run", "check", "close")


class Shells:
    """Carries out requests of tasks to shells: `{"kind": "shell", "shell": NAME, "do": …,
    "command": …}`. The first request to a shell sets its `home` and `folder`."""

    def __init__(self, limits: Limits = SHELL) -> None:
        self.limits = limits
        # limits how many start at a time, so that none takes too long
        self._starting = asyncio.Semaphore(max(2, os.cpu_count() or 1))
        self._shells: dict[str, asyncio.Task[Shell]] = {}

    async def execute(self, program: Mapping[str, Any]) -> dict[str, Any]:
        """The result as data: output, status, cut, timed_out, whether the view has several users;
        for commands also restarted, for scripts errors."""
        asked = parse_request(program)
        if asked["do"] == "close":
            await self.close(asked["shell"])
            return {}
        shell = await self._shell(asked["shell"], asked.get("home", HOME), asked.get("folder", ""))
        return {**await shell.do(asked), "users": shell.users}

    async def _shell(self, name: str, home: str, folder: str) -> Shell:
        if name not in self._shells:
            shell = Shell(self.limits, home=home, folder=folder)
            self._shells[name] = asyncio.create_task(self._start(shell))
        try:
            return await asyncio.shield(self._shells[name])
        except Exception:
            self._shells.pop(name, None)
            raise

    async def _start(self, shell: Shell) -> Shell:
        async with self._starting:
            return await shell.start()

    async def close(self, name: str | None = None) -> None:
        """Close one shell, or all."""
        for each in [name] if name is not None else list(self._shells):
            if (starting := self._shells.pop(each, None)) is not None:
                started = await asyncio.gather(starting, return_exceptions=True)
                if isinstance(started[0], Shell):
                    await started[0].close()


def parse_request(program: Mapping[str, Any]) -> dict[str, Any]:
    """Check a request of a task to a shell."""
    if unknown := set(program) - KEYS:
        raise TaskError(
            f"unknown key in a shell request: {', '.join(sorted(unknown))}; valid keys: "
            f"{', '.join(sorted(KEYS))}"
        )
    if program.get("do") not in DOES or not isinstance(program.get("shell"), str):
        raise TaskError(
            "a shell request needs two fields: `shell`, the name of the shell session, and `do`, "
            f"one of {', '.join(DOES)}"
        )
    if program["do"] != "close" and not isinstance(program.get("command"), str):
        raise TaskError("a shell request needs a text in `command`")
    if program["do"] == "run" and set(program) & {"arguments", "language"}:
        raise TaskError(
            "`arguments` and `language` are only for scripts (`do` is prepare or check), not "
            "for `run`"
        )
    if program["do"] != "check" and {"live", "proc"} & set(program):
        raise TaskError("`live` and `proc` are only for checks (`do` is check)")
    return dict(program)
