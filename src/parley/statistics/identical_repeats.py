"""Find models that always give the same reply to the same prompt, so that repeats add nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

ENOUGH = 3  # identical plays of a match before models are taken to be deterministic
WHAT_HELPS = "a temperature above 0, more items, or other seat orders and partners"
MARK = re.compile(r"\[/?[0-9a-f]{12}(?=[:\]])")  # around quotations: new ones in every match


class Line(NamedTuple):
    """What a seat, or the referee to some seats, said in a match."""

    sender: str | None  # the key of a seat; None: the referee
    audience: Sequence[str]
    text: str


class DigestedReply(NamedTuple):
    """A reply, and everything that its seat had seen and said before; both as digests."""

    role: str
    alias: str
    prompt: bytes
    reply: bytes


def collect_exchanges(
    lines: Iterable[Line], seats: Mapping[str, tuple[str, str]]
) -> list[DigestedReply]:
    """The exchanges of a match, from its messages in order. `seats` has the role and alias of
    every seat. Delimiters around quotations are ignored, because they differ from match to
    match, and it does not matter whether a seat was told something in one message or in several."""
    views = {key: blake2b(digest_size=16) for key in seats}
    found = []
    for sender, audience, text in lines:
        words = text.encode("utf-8", "replace")
        if sender is not None:
            reply = blake2b(words, digest_size=16).digest()
            found.append(DigestedReply(*seats[sender], views[sender].digest(), reply))
            views[sender].update(b"\0" + words + b"\0")
        elif audience and text:
            # as several messages become one turn of a conversation
            told = b"\n\n" + MARK.sub("[", text).encode("utf-8", "replace")
            for key in audience:
                views[key].update(told)
    return found


class RepeatTracker:
    """Detects matches that are repeated word for word, while they are played or read."""

    def __init__(self) -> None:
        self._replies: dict[tuple[str, bytes], bytes] = {}  # by alias and prompt
        self._plays: dict[bytes, set[int]] = {}  # digests of the blocks and repeats of each match
        # the number of identical plays of the match that was repeated most often
        self.most_plays = 0
        self.differs = False  # the same words have had different replies

    def add(self, block: str, repeat: int, exchanges: Iterable[DigestedReply]) -> None:
        """Take in one match."""
        if self.differs:
            return
        known = sorted(exchanges)
        for each in known:
            kept = self._replies.setdefault((each.alias, each.prompt), each.reply)
            if kept != each.reply:
                self.differs = True
                self._replies.clear()
                self._plays.clear()
                self.most_plays = 0
                return
        if known:
            plays = self._plays.setdefault(digest_exchanges(known), set())
            plays.add(hash((block, repeat)))
            self.most_plays = max(self.most_plays, len(plays))

    @property
    def prompts(self) -> int:
        """How many different prompts it has seen."""
        return len(self._replies)

    @property
    def is_deterministic(self) -> bool:
        """Whether the models seem deterministic: no repeat differed, and one match was played
        often enough."""
        return self.most_plays >= ENOUGH


class PlayedMatch(NamedTuple):
    """Everything that was asked and said in a match, judges included, and its scores."""

    block: str
    design: str  # what the plan wanted of it: the item, and who sits where
    exchanges: bytes  # digest
    scores: Sequence[tuple[str, str, str, float | None]]  # role, alias, metric, value


def group_identical_blocks(matches: Iterable[PlayedMatch]) -> dict[str, str]:
    """For each block, the first block with the same prompts, replies and scores."""
    blocks: dict[str, list[bytes]] = {}
    kept: dict[bytes, bytes] = {}  # equal digests once
    for match in matches:
        scores = repr(sorted(match.scores, key=repr)).encode()
        whole = blake2b(match.exchanges + scores, digest_size=16).digest()
        blocks.setdefault(match.block, []).append(kept.setdefault(whole, whole))
    most = max(map(len, blocks.values()), default=0)
    first: dict[tuple[bytes, ...], str] = {}
    found = {}
    for block, digests in sorted(blocks.items(), key=lambda each: len(each[1]) < most):
        key, same = tuple(sorted(digests)), block
        if len(key) < most:  # a block that broke off, or lost a match
            parts = Counter(key)
            same = next((name for whole, name in first.items() if parts <= Counter(whole)), block)
        found[block] = first.setdefault(key, same)
    return found


def is_design_repeated(matches: Iterable[PlayedMatch], same: Mapping[str, str]) -> bool:
    """Whether the plan played each of its blocks (items, seat orders) equally often, more than
    once, and always identically, so that further repeats would not change the mean. If blocks
    differ although the plan repeats them, the difference is chance, however often each of them was
    seen.

    `same` maps every block to the first identical block; a block that broke off counts as that one.
    """
    wanted: dict[str, list[str]] = {}
    for match in matches:
        wanted.setdefault(match.block, []).append(match.design)
    designs = {block: tuple(sorted(parts)) for block, parts in wanted.items()}
    played: dict[tuple[str, ...], list[str]] = {}
    for first in same.values():
        played.setdefault(designs[first], []).append(first)
    times = {len(firsts) for firsts in played.values()}
    alike = all(len(set(firsts)) == 1 for firsts in played.values())
    return alike and len(times) == 1 and min(times) > 1


def digest_exchanges(exchanges: Sequence[DigestedReply]) -> bytes:
    """The digest of a match's exchanges. It does not depend on which of several equal seats a
    model had."""
    return blake2b(repr([tuple(each) for each in exchanges]).encode(), digest_size=16).digest()
