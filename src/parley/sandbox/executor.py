"""Where a run's programs go: a proven sandbox, as many at a time as there are processors, and
doubtful ones once more alone."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from parley.errors import SandboxError
from parley.sandbox import canary
from parley.sandbox.cgroups import Group, limited_group
from parley.sandbox.judges import Judges
from parley.sandbox.judging import Doubtful, Verdict, judged
from parley.sandbox.kinds import REMEDY, Bare, Bubblewrap, Container, Kind
from parley.sandbox.limits import MB, Limits
from parley.sandbox.process import First
from parley.sandbox.talk import Leash
from parley.sandbox.trials import Trial, trial_of


class Sandbox:
    """Runs what models write. It starts, and proves itself, with the first program."""

    def __init__(
        self,
        choice: str = "bubblewrap",
        limits: Limits | None = None,
        warm: bool = True,
        jobs: int | None = None,
    ) -> None:
        self.choice, self.limits, self.warm = choice, limits or Limits(), warm
        self.jobs = jobs or os.cpu_count() or 1
        self.kind: Kind | None = None  # once it is known that it works
        self._threads = ThreadPoolExecutor(self.jobs, "parley-sandbox")
        self._standing: tuple[First, Judges] | None = None
        self._group: Group | None = None
        self._opening = threading.Lock()
        self._leashes: set[Leash] = set()
        self._closed = False
        self._slots, self._alone = asyncio.Semaphore(self.jobs), asyncio.Lock()

    async def execute(self, program: Mapping[str, Any]) -> dict[str, Any]:
        """The verdict on a program, as data. What speaks against the machine and not against the
        program is an error."""
        trial = trial_of(program)
        try:
            async with self._slots:
                verdict = await self._tried(trial)
        except (Doubtful, SandboxError):
            async with self._all_slots():
                try:
                    verdict = await self._tried(trial, again=True)
                except Doubtful as doubt:
                    if doubt.verdict is None:
                        raise SandboxError(f"a program could not be judged: {doubt}") from None
                    verdict = doubt.verdict
        return verdict.as_data()

    async def _tried(self, trial: Trial, again: bool = False) -> Verdict:
        if self._closed:
            raise SandboxError("the sandbox was closed before the program was judged")
        leash = Leash()
        self._leashes.add(leash)
        work = asyncio.get_running_loop().run_in_executor(
            self._threads, self._judged, trial, leash, again
        )
        try:
            verdict = await asyncio.shield(work)
        except asyncio.CancelledError:
            leash.pull()
            # nothing of it is left when the cancellation goes on
            await asyncio.gather(work, return_exceptions=True)
            raise
        finally:
            self._leashes.discard(leash)
        if leash.pulled:
            raise SandboxError("the sandbox was closed while the program ran")
        return verdict

    def _judged(self, trial: Trial, leash: Leash, again: bool) -> Verdict:
        first, judges = self._open(again)
        if self.warm or not first.kind.nested:
            return judged(first, trial, judges, leash)
        first = First(first.kind, self.limits, self._group)
        judges = Judges(first)
        try:
            return judged(first, trial, judges, leash)
        finally:
            judges.close()
            first.close()

    @asynccontextmanager
    async def _all_slots(self) -> AsyncIterator[None]:
        async with self._alone:  # one at a time collects them, or two would wait for each other
            held = 0
            try:
                while held < self.jobs:
                    await self._slots.acquire()
                    held += 1
                yield
            finally:
                for _ in range(held):
                    self._slots.release()

    def _open(self, doubted: bool = False) -> tuple[First, Judges]:
        """Start the first process where none is running, and try out what it keeps from its
        programs.

        One that is doubted has to show that it still works.
        """
        with self._opening:
            if self._closed:
                raise SandboxError("the sandbox is closed")
            if (
                self._standing is not None
                and self._standing[0].alive
                and (not doubted or self._standing[0].works())
            ):
                return self._standing
            self._end_standing()
            if self._group is None and self.choice == "bubblewrap":
                self._group = limited_group(self.jobs * (self.limits.memory + 128 * MB) + 256 * MB)
            if self.kind is None:
                first = started(self.choice, self.limits, self._group)
            else:  # what stood before stands again, and nothing weaker
                first = tried_out(self.kind, self.limits, self._group)
            if self.choice != "none":
                try:
                    canary.proved(first)
                except BaseException:
                    first.close()
                    raise
            self.kind, self._standing = first.kind, (first, Judges(first))
            return self._standing

    def _end_standing(self) -> None:
        if self._standing is not None:
            first, judges = self._standing
            self._standing = None
            judges.close()
            first.close()

    @property
    def bounded(self) -> bool:
        """Whether the kernel bounds the memory of all programs together."""
        return self._group is not None

    def open(self) -> Kind:
        """Start and prove it now, before anything is paid for what it could not run; what it is."""
        return self._open()[0].kind

    async def prove(self) -> Kind:
        """The same, beside whatever else is going on."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.open)

    def close(self) -> None:
        """End what runs; nothing is left behind."""
        self._closed = True
        for leash in list(self._leashes):
            leash.pull()
        self._threads.shutdown()
        with self._opening:
            self._end_standing()
            if self._group is not None:
                self._group.close()


def started(choice: str, limits: Limits, group: Group | None) -> First:
    """A first process of the chosen kind, with fresh namespaces for each program where the kernel
    grants them."""
    if choice == "none":
        return First(Bare(), limits)
    if choice in ("docker", "podman"):
        return First(Container(choice), limits)
    try:
        return tried_out(Bubblewrap(), limits, group)
    except SandboxError as nested:
        try:
            return tried_out(Bubblewrap(nested=False), limits, group)
        except SandboxError as wrong:
            raise SandboxError(
                f"model-written code cannot be isolated here ({wrong}; {nested}): {REMEDY}"
            ) from None


def tried_out(kind: Kind, limits: Limits, group: Group | None) -> First:
    first = First(kind, limits, group)
    try:
        first.process("program").ended()
    except BaseException:
        first.close()
        raise
    return first
