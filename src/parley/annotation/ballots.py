"""The ballots of one person. There are two kinds: on pairs of conversations (`pair_ballots`), and
on whether single conversations are successes (`verdict_ballots`). The voting page and the terminal
know only `Voter`."""

from __future__ import annotations

import secrets
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from typing import ClassVar, Generic, Literal, NamedTuple, TypeVar

from parley.annotation.sheets import JudgedConversation, Sheet
from parley.errors import UsageError
from parley.store.types import RunRef

VoteOutcome = Literal["recorded", "same", "changed", "not needed"]
Place = TypeVar("Place")  # what one ballot is about: the number of a pair, or a seat of a match


class VoteChoice(NamedTuple):
    """A vote that may be given."""

    value: str
    typed: str  # at the terminal; its first letter is enough
    button: str


class Voter(ABC, Generic[Place]):
    """A person, and the ballots of one kind that are theirs."""

    noun: ClassVar[str]  # what a ballot is about
    can_skip: ClassVar[bool]  # whether ballots that are put off are stored
    late: ClassVar[str]  # why a vote was not needed
    afterwards: ClassVar[str]  # what a person who has voted on everything may do
    choices: Sequence[VoteChoice]  # in the order of their keys

    @abstractmethod
    def invite(self) -> tuple[str, bool]:
        """A new secret for a personal link, and whether it replaces one. It is returned once."""

    @abstractmethod
    def own_votes(self) -> Mapping[Place, str]:
        """The votes that this person gave and may change, the latest last."""

    @abstractmethod
    def remaining(self) -> Collection[Place]:
        """What still needs a vote of this person, even if others look at it now."""

    @abstractmethod
    def offer(self, skipped: Collection[Place] = ()) -> Place | None:
        """What this person should look at next; None if nothing is left for them now."""

    @abstractmethod
    def read(self, place: Place) -> Sheet | JudgedConversation:
        """What people see of it."""

    @abstractmethod
    def vote(self, place: Place, choice: str, change: bool = False) -> VoteOutcome:
        """Record a vote. It is on disk when this returns. `UsageError` if this person has voted
        differently, unless `change` asks for it."""

    @abstractmethod
    def find_own(self, number: int) -> Sequence[Place]:
        """What this person may vote on again, by the number of its pair or match."""

    @abstractmethod
    def parse_place(self, text: str) -> Place | None:
        """The place that `write_place` wrote; None if there is none like that."""

    @abstractmethod
    def write_place(self, place: Place) -> str:
        """A place as an address or a form has it."""

    @abstractmethod
    def describe(self, place: Place) -> str:
        """A place in words."""

    @abstractmethod
    def describe_progress(self) -> str:
        """How much is left."""

    def skip(self, place: Place) -> None:
        """Put a ballot off, if `can_skip`."""

    def skipped(self) -> Collection[Place]:
        """What this person has put off."""
        return ()

    def forget_skipped(self) -> None:
        """Offer again what was put off."""

    def leave(self) -> None:
        """Leave what this person was looking at to others."""

    def find_resumable(self) -> RunRef | None:
        """The run that waits for these votes and now has them all."""
        return None


def compare_votes(
    who: str, before: str | None, choice: str, change: bool, place: str, number: int
) -> VoteOutcome:
    """What a vote is beside the one that this person gave `before`. The same vote again changes
    nothing. A different one is refused, unless `change` asks for it."""
    if before == choice:
        return "same"
    if before is not None and not change:
        raise UsageError(
            f"{who} has already voted {before} on {place}: use --change {number} to replace this "
            "vote"
        )
    if before is None and change:
        raise UsageError(f"{who} has not voted on {place}, so there is no vote to change")
    return "recorded" if before is None else "changed"


def normalise_name(name: str) -> str:
    """The name of a person without needless white space."""
    given = " ".join(unicodedata.normalize("NFKC", name).split())
    if not given or not given.isprintable() or len(given) > 80:
        raise UsageError(f"an annotator's name must have 1 to 80 characters, not {name[:100]!r}")
    return given


def make_token() -> str:
    """A new secret for a personal link."""
    return secrets.token_urlsafe(24)


def hash_token(token: str) -> bytes:
    """The digest of a secret. The secret is long and random, so no salt is needed."""
    return blake2b(token.encode(), digest_size=32).digest()


def parse_number(text: str) -> int | None:
    """The number of a pair or a match; None if it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
