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
class KeptJudge:
    """A judge that is kept for further programs, and how many programs use it now."""

    talk: Talk
    users: int = 0
    retired: bool = False  # it gets no new program, and ends with its last one


class Judges:
    """The judges of a sandbox, by problem."""

    def __init__(self, first: First) -> None:
        self._first = first
        self._kept: OrderedDict[bytes, KeptJudge] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def connect(self, problem: bytes) -> Iterator[JudgeConnection]:
        """A fresh process of a problem's judge, for one program. If anything goes wrong there,
        later programs get another judge; those that use this one keep it."""
        if not self._first.kind.nested:
            with self._start_judge(problem) as talk:
                yield JudgeConnection(talk, talk)
            return
        judge = self._reserve(problem)
        try:
            ours, theirs = socket.socketpair()
            with ours:
                with theirs:
                    socket.send_fds(judge.talk.channel, [b"."], [theirs.fileno()])
                yield JudgeConnection(Frames(ours), judge.talk)
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
                judge.talk.finish()

    def _start_judge(self, problem: bytes) -> Talk:
        """Start a judge and send it its problem."""
        talk = self._first.process("judge")
        try:
            talk.send(problem, time.monotonic() + START)
        except (Gone, Late):
            raise SandboxError(
                "the process that runs the tests did not accept its problem: "
                f"{talk.finish(by_itself=True).end}"
            ) from None
        return talk

    def _reserve(self, problem: bytes) -> KeptJudge:
        with self._lock:
            if (judge := self._kept.get(problem)) is None:
                judge = self._kept[problem] = KeptJudge(self._start_judge(problem))
            judge.users += 1
            self._kept.move_to_end(problem)
            idle = [each for each, kept in self._kept.items() if not kept.users]
            old = [self._kept.pop(each) for each in idle[: max(0, len(self._kept) - MOST)]]
        for each in old:
            each.talk.finish()
        return judge

    def _retire(self, problem: bytes, judge: KeptJudge) -> None:
        with self._lock:
            judge.retired = True
            if self._kept.get(problem) is judge:
                del self._kept[problem]

    def close(self) -> None:
        with self._lock:
            kept = list(self._kept.values())
            self._kept.clear()
        for judge in kept:
            judge.talk.finish()


@dataclass(frozen=True)
class JudgeConnection:
    """The connection to a judge for one program."""

    frames: Frames
    judge: Talk

    def finish(self) -> End:
        """End a judge that does not answer any more, and return how it ended."""
        return self.judge.finish(by_itself=True)
