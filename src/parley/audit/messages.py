"""Audit checks on single messages: synchrony, completeness, anonymity."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from parley.masking.mask import compile_hidden, describe_spans, hidden_words
from parley.match.record import RecordedCall
from parley.participants._registry import participant_kinds
from parley.rules.pool import Seat, text_of
from parley.store.config import Config
from parley.store.reader import RunReader
from parley.store.types import ViolationRow
from parley.tables import shorten

Messages = Sequence[Mapping[str, Any]]


def find_unsynchronous(messages: Messages) -> Iterator[str]:
    """Places where a seat could have read a reply before its round closed."""
    opened = 0
    asked: set[str] = set()
    replied: set[str] = set()
    for message in messages:
        round, kind, audience = message["round"], message["kind"], set(message["audience"])
        silent = sorted(asked - replied)
        if kind == "ask":
            if round < opened or (round == opened and replied):
                yield (
                    f"round {round}: a seat got its prompt after another seat had already replied"
                )
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
                yield f"a reply of round {round} was recorded during round {opened}"
            elif message["sender"] not in asked:
                yield f"round {round}: {message['sender']} replied without a prompt"
            replied.add(message["sender"])
        elif kind == "tell" and (round != opened or silent):
            yield f"round {round}: seats received a message while round {opened} was open"
        elif kind == "again" and (round != opened or not audience <= replied):
            yield (
                f"round {round}: {', '.join(sorted(audience))} got another prompt before "
                "replying to the first one"
            )


def unmatched_replies(
    messages: Messages, calls: Sequence[RecordedCall], config: Config
) -> Iterator[str]:
    """Replies of which the record has only the text or only the place in a round."""
    words = {(call.round, call.seat.key, call.attempt): call for call in calls}
    places = {(m["round"], m["sender"], m["attempt"]) for m in messages if m["kind"] == "reply"}
    for round, seat, attempt in sorted(places - words.keys()):
        yield f"round {round}, {seat}, attempt {attempt + 1}: the text of this reply is missing"
    for round, seat, attempt in sorted(words.keys() - places):
        # copied matches may last longer than the new judges let them
        if config.is_live_role(words[round, seat, attempt].seat.role):
            yield (
                f"round {round}, {seat}, attempt {attempt + 1}: the record has this reply, but "
                "no round contains it"
            )


def words_of_task(reader: RunReader) -> str:
    """All text that comes from the task, its prompts, parameters and items."""
    config = reader.info.config
    return str(
        (
            config.task,
            config.params,
            list(reader.info.identity["roles"]),
            reader.run.items(),
            reader.info.identity["texts"],
        )
    ).lower()


def names_of_models(reader: RunReader) -> set[str]:
    """The names of the models in the run, if they are long enough to identify one."""
    config, kinds = reader.info.config, participant_kinds()
    models = (str(options["model"]).partition("/") for options in config.models.values())
    asked = {
        name.rstrip("/").rpartition("/")[2] for family, _, name in models if family not in kinds
    }
    served = {name for names in reader.usage.names_served().values() for name in names}
    return {name for name in asked | served if len(name) >= 4}


def list_foreign_names(reader: RunReader) -> list[str]:
    """Model names that no prompt, parameter or item contains."""
    own = words_of_task(reader)
    names = names_of_models(reader) | {
        alias for alias in reader.info.config.models if len(alias) >= 4
    }
    return sorted(name for name in names if name.lower() not in own)


def find_names_in_prompts(reader: RunReader) -> list[str]:
    """Models whose names are in the prompts, where all seats read them."""
    texts = "\n".join(reader.info.identity["texts"].values())
    return sorted(name for name in names_of_models(reader) if word_pattern(name).search(texts))


def find_leaked_names(messages: Messages, names: Sequence[str]) -> Iterator[str]:
    """Messages of the referee that contain a name which no seat has written."""
    said = " ".join(
        message["content"] or "" for message in messages if message["kind"] == "reply"
    ).lower()
    for name in names:
        if name.lower() in said:
            continue
        word = word_pattern(name)
        for message in messages:
            if message["kind"] != "reply" and word.search(message["content"] or ""):
                yield (
                    f"round {message['round']}: a message of the referee contains the model "
                    f"name {name!r}"
                )
                break


def find_readable_names(messages: Messages, calls: Sequence[RecordedCall]) -> Iterator[str]:
    """Names that are on record as masked, and stand in a later message of the referee."""
    said = {(call.round, call.seat.key, call.attempt): call for call in calls}
    patterns: dict[str, re.Pattern[str]] = {}
    roles: dict[str, tuple[str, ...]] = {}  # by word, who does not read it; empty: nobody does
    own: list[str] = []
    for message in messages:
        if message["kind"] == "reply":
            call = said.get((message["round"], message["sender"], message["attempt"]))
            own = []
            for span in call.masked if call else ():
                words = hidden_words(text_of(call.reply.content), [span]) if call else []
                own += [] if span.roles else words
                for word in words:
                    patterns.setdefault(word, compile_hidden((word,)))
                    known = roles.get(word, span.roles)
                    roles[word] = (*known, *span.roles) if known and span.roles else ()
            continue
        # What is said about one reply is for its speaker alone, who knows the words of others that
        # it has written itself.
        hidden = own if message["kind"] == "again" else list(patterns)
        readers = {Seat.of(key).role for key in message["audience"]}
        for word in hidden:
            if roles[word] and readers.isdisjoint(roles[word]):
                continue
            if message["round"] and patterns[word].search(message["content"] or ""):
                yield (
                    f"round {message['round']}: a message of the referee contains the name "
                    f"{shorten(word)!r}, which is on record as masked"
                )
                break


def check_masking(
    calls: Sequence[RecordedCall], violations: Sequence[ViolationRow]
) -> Iterator[str]:
    """Replies with masked names that are no violation on record, and the other way round."""
    kept = {(each.round, each.seat.key, each.attempt): each.detail for each in violations}
    found = {
        (call.round, call.seat.key, call.attempt): names
        for call in calls
        if (names := describe_spans(text_of(call.reply.content), call.masked))
    }
    for place in sorted(kept.keys() | found.keys()):
        round, seat, _ = place
        if kept.get(place) != found.get(place):
            yield (
                f"round {round}, {seat}: the names that were masked in a reply "
                f"({shorten(found.get(place, 'none'))}) are not those of its violation "
                f"({shorten(kept.get(place, 'none'))})"
            )


def word_pattern(name: str) -> re.Pattern[str]:
    """A pattern that matches a name as a whole word."""
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.IGNORECASE)
