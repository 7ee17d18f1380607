"""Judges that stay: one confined process a problem, which runs the tests of one program after the other."""

from __future__ import annotations

import socket
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from parley.sandbox.process import End, First, Frames, Talk

MOST = 8  # problems whose judges are kept


class Judges:
    """The judges of a sandbox, by problem."""

    def __init__(self, first: First) -> None:
        self._first = first
        self._kept: OrderedDict[bytes, Talk] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def sitting(self, problem: bytes) -> Iterator[Sitting]:
        """A fresh process of a problem's judge, for one program; if anything goes wrong there, the judge is replaced."""
        if not self._first.kind.nested:
            with self._first.process("judge") as talk:
                yield Sitting(talk, talk)
            return
        judge = self._judge(problem)
        ours, theirs = socket.socketpair()
        with ours:
            try:
                with theirs:
                    socket.send_fds(judge.channel, [b"."], [theirs.fileno()])
                yield Sitting(Frames(ours), judge)
            except BaseException:
                self._dismiss(problem, judge)
                raise

    def _judge(self, problem: bytes) -> Talk:
        with self._lock:
            if (judge := self._kept.get(problem)) is None:
                judge = self._kept[problem] = self._first.process("judge")
            self._kept.move_to_end(problem)
            old = [self._kept.popitem(last=False)[1] for _ in range(len(self._kept) - MOST)]
        for each in old:
            each.ended()
        return judge

    def _dismiss(self, problem: bytes, judge: Talk) -> None:
        with self._lock:
            if self._kept.get(problem) is judge:
                del self._kept[problem]
        judge.ended()

    def close(self) -> None:
        for judge in self._kept.values():
            judge.ended()
        self._kept.clear()


class Sitting:
    """One program before its judge."""

    def __init__(self, frames: Frames, judge: Talk) -> None:
        self._frames, self._judge = frames, judge
        self.send, self.receive = frames.send, frames.receive

    def ended(self) -> End:
        """How the judge ended, once it does not answer any more."""
        return self._judge.ended(by_itself=True)
