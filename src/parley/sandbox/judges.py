"""Persistent judges: one confined process per problem, which runs the tests of one program after
another."""

from __future__ import annotations

import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from parley.errors import SandboxError
from parley.sandbox.process import START, First
from parley.sandbox.talk import End, Frames, Gone, Late, Talk

MOST = 32  # problems whose judges are kept


@dataclass
class Kept:
    """A judge that stays, and how many programs are before it."""

    talk: Talk
    users: int = 0
    retired: bool = False  # nobody new comes before it, and it ends with its last program


class Judges:
    """The judges of a sandbox, by problem."""

    def __init__(self, first: First) -> None:
        self._first = first
        self._kept: OrderedDict[bytes, Kept] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def sitting(self, problem: bytes) -> Iterator[Sitting]:
        """A fresh process of a problem's judge, for one program; if anything goes wrong there, the
        judge is replaced for those who come, and stays for those who are before it."""
        if not self._first.kind.nested:
            with self._told(problem) as talk:
                yield Sitting(talk, talk)
            return
        judge = self._taken(problem)
        try:
            ours, theirs = socket.socketpair()
            with ours:
                with theirs:
                    socket.send_fds(judge.talk.channel, [b"."], [theirs.fileno()])
                yield Sitting(Frames(ours), judge.talk)
        except OSError as wrong:
            self._retire(problem, judge)
            raise SandboxError(f"the process that runs the tests is unreachable: {wrong}") from None
        except BaseException:
            self._retire(problem, judge)
            raise
        finally:
            with self._lock:
                judge.users -= 1
                over = judge.retired and not judge.users
            if over:
                judge.talk.ended()

    def _told(self, problem: bytes) -> Talk:
        """A new judge that knows its problem."""
        talk = self._first.process("judge")
        try:
            talk.send(problem, time.monotonic() + START)
        except (Gone, Late):
            raise SandboxError(
                "the process that runs the tests did not accept its problem: "
                f"{talk.ended(by_itself=True).end}"
            ) from None
        return talk

    def _taken(self, problem: bytes) -> Kept:
        with self._lock:
            if (judge := self._kept.get(problem)) is None:
                judge = self._kept[problem] = Kept(self._told(problem))
            judge.users += 1
            self._kept.move_to_end(problem)
            idle = [each for each, kept in self._kept.items() if not kept.users]
            old = [self._kept.pop(each) for each in idle[: max(0, len(self._kept) - MOST)]]
        for each in old:
            each.talk.ended()
        return judge

    def _retire(self, problem: bytes, judge: Kept) -> None:
        with self._lock:
            judge.retired = True
            if self._kept.get(problem) is judge:
                del self._kept[problem]

    def close(self) -> None:
        with self._lock:
            kept = list(self._kept.values())
            self._kept.clear()
        for judge in kept:
            judge.talk.ended()


@dataclass(frozen=True)
class Sitting:
    """One program before its judge."""

    frames: Frames
    judge: Talk

    def ended(self) -> End:
        """How the judge ended, once it does not answer any more."""
        return self.judge.ended(by_itself=True)
