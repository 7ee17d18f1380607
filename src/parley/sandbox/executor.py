"""Run a run's programs in a tested sandbox, about as many at a time as there are processors; retry
programs with a doubtful result."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from parley.errors import SandboxError
from parley.sandbox import canary
from parley.sandbox.cgroups import Group, make_limited_group
from parley.sandbox.judges import Judges
from parley.sandbox.judging import Doubtful, Verdict, run_trial
from parley.sandbox.kinds import REMEDY, Bare, Bubblewrap, Container, Kind
from parley.sandbox.limits import MB, Limits
from parley.sandbox.process import First
from parley.sandbox.shells import Shells
from parley.sandbox.talk import Leash
from parley.sandbox.trials import Trial, trial_of

TURN = 0.3  # seconds after which the next program may start
LONG = 8  # maximum number of programs that run longer than TURN at a time


class Sandbox:
    """Runs model-written code. It starts and tests itself with the first program. Programs of kind
    `shell` go to a shell by its name."""

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
        self._shells = Shells()
        self._threads = ThreadPoolExecutor(self.jobs + LONG, "parley-sandbox")
        self._standing: tuple[First, Judges] | None = None
        self._group: Group | None = None
        self._opening = threading.Lock()
        self._leashes: set[Leash] = set()
        self._closed = False
        self._slots, self._long = asyncio.Semaphore(self.jobs), 0

    async def execute(self, program: Mapping[str, Any]) -> dict[str, Any]:
        """The verdict on a program, as data. Raises SandboxError if the machine, not the program,
        is at fault."""
        if program.get("kind") == "shell":
            self._refuse_no_shell()
            return await self._shells.execute(program)
        trial = trial_of(program)
        try:
            verdict = await self._in_turn(trial)
        except (Doubtful, SandboxError):
            try:
                verdict = await self._in_turn(trial, again=True)
            except Doubtful as doubt:
                if doubt.verdict is None:
                    raise SandboxError(f"a program could not be judged: {doubt}") from None
                verdict = doubt.verdict
        return verdict.as_data()

    async def _in_turn(self, trial: Trial, again: bool = False) -> Verdict:
        """Run a program when it is its turn. One that takes long soon lets others start."""
        async with self._slots:
            work = asyncio.create_task(self._run_on_thread(trial, again))
            try:
                while not (await asyncio.wait({work}, timeout=TURN))[0]:
                    if self._long < LONG:
                        break
                else:
                    return work.result()
            except asyncio.CancelledError:
                await cancel(work)
                raise
            self._long += 1
        try:
            return await work
        except asyncio.CancelledError:
            await cancel(work)
            raise
        finally:
            self._long -= 1

    async def _run_on_thread(self, trial: Trial, again: bool = False) -> Verdict:
        if self._closed:
            raise SandboxError("the sandbox was closed before the program was judged")
        leash = Leash()
        self._leashes.add(leash)
        work = asyncio.get_running_loop().run_in_executor(
            self._threads, self._judge, trial, leash, again
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

    def _judge(self, trial: Trial, leash: Leash, again: bool) -> Verdict:
        first, judges = self._open(again)
        if self.warm or not first.kind.nested:
            return run_trial(first, trial, judges, leash)
        first = First(first.kind, self.limits, self._group)
        judges = Judges(first)
        try:
            return run_trial(first, trial, judges, leash)
        finally:
            judges.close()
            first.close()

    def _open(self, doubted: bool = False) -> tuple[First, Judges]:
        """Start the first process if none is running, and test its isolation.

        If `doubted`, a running one must show that it still works.
        """
        with self._opening:
            if self._closed:
                raise SandboxError("the sandbox is already closed, so it cannot run programs")
            if (
                self._standing is not None
                and self._standing[0].alive
                and (not doubted or self._standing[0].works())
            ):
                return self._standing
            self._end_standing()
            if self._group is None and self.choice == "bubblewrap":
                most = (self.jobs + LONG) * (self.limits.memory + 128 * MB) + 256 * MB
                self._group = make_limited_group(min(most, machine_memory() * 3 // 4))
            if self.kind is None:
                first = start_first(self.choice, self.limits, self._group)
            else:  # restart the same kind, nothing weaker
                first = start_and_try(self.kind, self.limits, self._group)
            if self.choice != "none":
                try:
                    canary.prove_isolation(first)
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
    def is_memory_limited(self) -> bool:
        """Whether the kernel limits the memory of all programs together."""
        return self._group is not None

    def open(self) -> Kind:
        """Start and test the sandbox now, before the first paid call; returns its kind."""
        return self._open()[0].kind

    async def prove(self) -> Kind:
        """The same, without blocking the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.open)

    async def prove_shell(self) -> None:
        """Start a shell and close it, to find out before the first paid call if it works."""
        self._refuse_no_shell()
        name = "trial"
        asked = {"kind": "shell", "shell": name, "do": "prepare", "command": "true"}
        await self._shells.execute(asked)
        await self._shells.close(name)

    def _refuse_no_shell(self) -> None:
        if self.choice != "bubblewrap":
            said = (
                "no sandbox: remove --unsafe-run-code-without-isolation"
                if self.choice == "none"
                else f"`--sandbox {self.choice}`: remove that option"
            )
            raise SandboxError(
                f"the shell for models needs `--sandbox bubblewrap`, but this run uses {said}"
            )

    async def close_shells(self, name: str | None = None) -> None:
        """Close the shell of this name, or all of them."""
        await self._shells.close(name)

    def close(self) -> None:
        """Stop all programs and clean up. Close shells first, with `close_shells`."""
        self._closed = True
        for leash in list(self._leashes):
            leash.pull()
        self._threads.shutdown()
        with self._opening:
            self._end_standing()
            if self._group is not None:
                self._group.close()


async def cancel(work: asyncio.Task[Verdict]) -> None:
    """Cancel a trial and wait until it is gone."""
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


def machine_memory() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def start_first(choice: str, limits: Limits, group: Group | None) -> First:
    """Start a first process of the chosen kind, with new namespaces for each program if the kernel
    allows it."""
    if choice == "none":
        return First(Bare(), limits)
    if choice in ("docker", "podman"):
        return First(Container(choice), limits)
    try:
        return start_and_try(Bubblewrap(), limits, group)
    except SandboxError as nested:
        try:
            return start_and_try(Bubblewrap(nested=False, reason=str(nested)), limits, group)
        except SandboxError as wrong:
            raise SandboxError(
                f"model-written code cannot be isolated on this machine ({wrong}; {nested}): "
                f"{REMEDY}"
            ) from None


def start_and_try(kind: Kind, limits: Limits, group: Group | None) -> First:
    first = First(kind, limits, group)
    try:
        first.process("program").finish()
    except BaseException:
        first.close()
        raise
    return first
