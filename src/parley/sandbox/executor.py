"""Where a run's programs go: a proven sandbox, as many at a time as there are processors, and doubtful ones once more alone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from parley.errors import SandboxError
from parley.sandbox import canary
from parley.sandbox.cgroups import Group, limited_group
from parley.sandbox.judges import Judges
from parley.sandbox.judging import Doubtful, Trial, Verdict, judged, trial_of
from parley.sandbox.kinds import REMEDY, Bare, Bubblewrap, Container, Kind
from parley.sandbox.limits import MB, Limits
from parley.sandbox.process import First


class Sandbox:
    """Runs what models write. It starts, and proves itself, with the first program."""

    def __init__(
        self, choice: str = "bubblewrap", limits: Limits | None = None, warm: bool = True, jobs: int | None = None
    ) -> None:
        self.choice, self.limits, self.warm = choice, limits or Limits(), warm
        self.jobs = jobs or os.cpu_count() or 1
        self.kind: Kind | None = None  # once it is known that it works
        self._threads = ThreadPoolExecutor(self.jobs, "parley-sandbox")
        self._first: First | None = None
        self._judges: Judges | None = None
        self._group: Group | None = None
        self._opening = asyncio.Lock()
        self._slots, self._alone = asyncio.Semaphore(self.jobs), asyncio.Lock()

    async def execute(self, program: Mapping[str, Any]) -> dict[str, Any]:
        """The verdict on a program, as data. What speaks against the machine and not against the program is an error."""
        trial = trial_of(program)
        try:
            async with self._slots:
                verdict = await self._tried(trial)
        except (Doubtful, SandboxError):
            async with self._all_slots():
                try:
                    verdict = await self._tried(trial)
                except Doubtful as doubt:
                    if doubt.verdict is None:
                        raise SandboxError(f"a program could not be judged: {doubt}") from None
                    verdict = doubt.verdict
        return verdict.as_data()

    async def _tried(self, trial: Trial) -> Verdict:
        await self.prove()
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._judged, trial)

    def _judged(self, trial: Trial) -> Verdict:
        assert self._first is not None
        assert self._judges is not None
        assert self.kind is not None
        if self.warm or not self.kind.nested:
            return judged(self._first, trial, self._judges)
        first = First(self.kind, self.limits, self._group)
        judges = Judges(first)
        try:
            return judged(first, trial, judges)
        finally:
            judges.close()
            first.close()

    @asynccontextmanager
    async def _all_slots(self) -> AsyncIterator[None]:
        async with self._alone:  # one at a time collects them, or two would wait for each other
            for _ in range(self.jobs):
                await self._slots.acquire()
            try:
                yield
            finally:
                for _ in range(self.jobs):
                    self._slots.release()

    def _open(self) -> None:
        """Start the first process where none is running, and try out what it keeps from its programs."""
        if self._first is not None and self._first.alive:
            return
        if self._group is None and self.choice == "bubblewrap":
            self._group = limited_group(self.jobs * (self.limits.memory + 128 * MB) + 256 * MB)
        first = started(self.choice, self.limits, self._group)
        if self.kind is None and self.choice != "none":
            try:
                canary.proved(first)
            except BaseException:
                first.close()
                raise
        self.kind, self._first, self._judges = first.kind, first, Judges(first)

    @property
    def bounded(self) -> bool:
        """Whether the kernel bounds the memory of all programs together."""
        return self._group is not None

    async def prove(self) -> Kind:
        """Start it now, before anything is paid for what it could not run."""
        async with self._opening:
            await asyncio.get_running_loop().run_in_executor(self._threads, self._open)
        assert self.kind is not None
        return self.kind

    def close(self) -> None:
        """Nothing is left behind."""
        self._threads.shutdown()
        if self._judges is not None:
            self._judges.close()
        if self._first is not None:
            self._first.close()
        if self._group is not None:
            self._group.close()


def started(choice: str, limits: Limits, group: Group | None) -> First:
    """A first process of the chosen kind, with fresh namespaces for each program where the kernel grants them."""
    if choice == "none":
        return First(Bare(), limits)
    if choice in ("docker", "podman"):
        return First(Container(choice), limits)
    try:
        first = First(Bubblewrap(), limits, group)
        try:
            first.process("program").ended()
        except BaseException:
            first.close()
            raise
        return first
    except SandboxError as nested:
        first = First(Bubblewrap(nested=False), limits, group)
        try:
            first.process("program").ended()
        except SandboxError as wrong:
            raise SandboxError(f"model-written code cannot be isolated here ({wrong}; {nested}): {REMEDY}") from None
        return first
