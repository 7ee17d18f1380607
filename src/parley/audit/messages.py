"""Audit checks on single messages: synchrony, completeness, anonymity."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from parley.config.prepare import names_to_mask
from parley.match.claims import SCHEME
from parley.match.masking import Masking, MatchMask
from parley.match.record import RecordedCall
from parley.rules.pool import Seat, text_of
from parley.store import RunReader, ViolationRow
from parley.store.config import Config
from parley.tables import shorten

Messages = Sequence[Mapping[str, Any]]


def find_unsynchronous(messages: Messages) -> Iterator[str]:
    """Places where words could have been read before their round closed."""
    opened = 0
    asked: set[str] = set()
    replied: set[str] = set()
    for message in messages:
        round, kind, audience = message["round"], message["kind"], set(message["audience"])
        silent = sorted(asked - replied)
        if kind == "ask":
            if round < opened or (round == opened and replied):
                yield f"round {round}: a seat was asked after another had already replied"
            elif round > opened:
                if silent:
                    yield (
                        f"round {round} began before {', '.join(silent)} had replied "
                        f"in round {opened}"
                    )
                opened, asked, replied = round, set(), set()
            asked |= audience
        elif kind == "reply":
            if round != opened:
                yield f"round {round}: a reply stands in round {opened}"
            elif message["sender"] not in asked:
                yield f"round {round}: {message['sender']} replied, and was not asked"
            replied.add(message["sender"])
        elif kind == "tell" and (round != opened or silent):
            yield f"round {round}: seats were told something while round {opened} was open"
        elif kind == "again" and (round != opened or not audience <= replied):
            yield (
                f"round {round}: {', '.join(sorted(audience))} was asked again "
                f"without having replied"
            )


def unmatched_replies(
    messages: Messages, calls: Sequence[RecordedCall], config: Config
) -> Iterator[str]:
    """Replies of which the record has the words or the place, but not both."""
    words = {(call.round, call.seat.key, call.attempt): call for call in calls}
    places = {(m["round"], m["sender"], m["attempt"]) for m in messages if m["kind"] == "reply"}
    for round, seat, attempt in sorted(places - words.keys()):
        yield f"round {round}, {seat}, try {attempt + 1}: the words of this reply are not on record"
    for round, seat, attempt in sorted(words.keys() - places):
        # what was taken over may go on for longer than judges let it
        if config.is_live_role(words[round, seat, attempt].seat.role):
            yield (
                f"round {round}, {seat}, try {attempt + 1}: "
                f"a reply is on record that stands in no round"
            )


def words_of_task(reader: RunReader) -> str:
    """All words that come from task, prompts, parameters and items, whoever plays."""
    config = reader.info.config
    return str(
        (
            config.task,
            config.params,
            list(reader.info.identity["roles"]),
            reader.items(),
            reader.info.identity["texts"],
        )
    ).lower()


def names_of_models(reader: RunReader) -> set[str]:
    """The names of the models that play, as far as they are long enough to mean one."""
    served = (name for names in reader.names_served().values() for name in names)
    return {name for name in (*names_to_mask(reader.info.config), *served) if len(name) >= 4}


def list_foreign_names(reader: RunReader) -> list[str]:
    """Names of the cast that no prompt, parameter or item brings in by itself."""
    own = words_of_task(reader)
    names = names_of_models(reader) | {
        alias for alias in reader.info.config.models if len(alias) >= 4
    }
    return sorted(name for name in names if name.lower() not in own)


def find_names_in_prompts(reader: RunReader) -> list[str]:
    """Models whose names stand in the prompts: everybody reads them there."""
    texts = "\n".join(reader.info.identity["texts"].values())
    return sorted(name for name in names_of_models(reader) if word_pattern(name).search(texts))


def find_leaked_names(messages: Messages, names: Sequence[str]) -> Iterator[str]:
    """The referee's words that hold a name which nobody at the table has said."""
    said = " ".join(
        message["content"] or "" for message in messages if message["kind"] == "reply"
    ).lower()
    for name in names:
        if name.lower() in said:
            continue
        word = word_pattern(name)
        for message in messages:
            if message["kind"] != "reply" and word.search(message["content"] or ""):
                yield f"round {message['round']}: the referee's words hold the name {name!r}"
                break


def find_unmasked_claims(
    messages: Messages, claims: Sequence[ViolationRow], own: str, masking: Masking
) -> Iterator[str]:
    """Claims to be somebody that are on record as masked, and stand in the referee's words all the
    same. What seats were shown by an earlier scheme was not masked by this one."""
    messages = [
        message
        for message in messages
        if any(masking.scheme_for(Seat.of(key)) == masking.scheme for key in message["audience"])
    ]
    for claim in claims:
        words = claim.detail
        for message in messages:
            if (
                message["kind"] != "reply"
                and words in (message["content"] or "")
                and words.lower() not in own
            ):
                yield (
                    f"round {message['round']}: what {claim.seat.key} said of itself was "
                    f"shown: {shorten(words)!r}"
                )
                break


def count_unmasked(
    calls: Sequence[RecordedCall], claims: Sequence[ViolationRow], mask: MatchMask
) -> tuple[int, int]:
    """How many claims today's rules find in what seats said, and how many of them are in replies
    of which nothing is on record as masked."""
    masked = {(claim.round, claim.seat, claim.attempt) for claim in claims}
    found = unmasked = 0
    for call in calls:
        count = len(mask.find_claims(text_of(call.reply.content), SCHEME).claims)
        found += count
        unmasked += count if (call.round, call.seat, call.attempt) not in masked else 0
    return found, unmasked


def check_masking(
    calls: Sequence[RecordedCall], claims: Sequence[ViolationRow], mask: MatchMask
) -> Iterator[str]:
    """Replies that say who speaks where nothing is on record as masked, and the other way round."""
    found = Counter(
        (call.round, call.seat.key, call.attempt, claim.said)
        for call in calls
        for claim in mask.find_claims(text_of(call.reply.content)).claims
    )
    kept = Counter((claim.round, claim.seat.key, claim.attempt, claim.detail) for claim in claims)
    for round, seat, _, leak in sorted(found - kept):
        claim = shorten(leak)
        yield f"round {round}, {seat}: it says who it is, and that was not masked: {claim!r}"
    for round, seat, _, leak in sorted(kept - found):
        yield f"round {round}, {seat}: masked on record, but never said: {shorten(leak)!r}"


def word_pattern(name: str) -> re.Pattern[str]:
    """A name where it stands by itself."""
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.IGNORECASE)
