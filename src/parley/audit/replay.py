"""Audit check: replaying a match from its recorded replies, without the models, must give the same
record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import orjson

from parley.audit.recalled import RecallCheck
from parley.config.prepare import Prepared, order_of_draws
from parley.errors import Halted, ParleyError
from parley.match.match import Match
from parley.match.protocol import Call, Reply
from parley.match.record import MemoryRecord
from parley.rules.notes import WrittenNote
from parley.rules.pool import Message, Seat, View, to_plain_data
from parley.rules.quotations import derive_match_key
from parley.rules.referee import Effect, LookUp
from parley.rules.references import DrawOrder, look_up
from parley.store.types import NoteRow, WholeMatch
from parley.tables import shorten

VIOLATION = ("round", "seat", "attempt", "kind", "detail", "outcome")
NOTHING: Any = object()


class NoParticipant:
    """Holds every seat of a replay. All replies must come from the record."""

    sees_item: bool = False

    async def reply(self, view: View, call: Call) -> Reply:
        raise Halted(f"round {view.round}, {view.seat}: the record has no reply")

    async def close(self) -> None:
        pass


class Replay(Match):
    """Plays from the record. Installed reference works are looked up again and must give the answer
    on record."""

    def __init__(
        self, *args: Any, works: Mapping[str, Any], draw_order: DrawOrder, **kwargs: Any
    ) -> None:
        super().__init__(*args, draw_order=draw_order, **kwargs)
        self.works, self.draw_order, self.doubts = works, draw_order, list[str]()

    async def _perform(self, effect: Effect) -> Any:
        answer = await super()._perform(effect)
        if isinstance(effect, LookUp) and effect.work in self.works:
            now = look_up(
                self.works,
                effect.work,
                effect.question,
                effect.given,
                self.task.name,
                self.draw_order,
            )
            if (now := orjson.loads(orjson.dumps(now))) != answer:
                asked = (
                    f"{effect.work}, {effect.question} "
                    f"{shorten(', '.join(map(str, effect.given)), 40)}"
                )
                self.doubts.append(
                    f"after round {self.referee.round}, {asked}: "
                    f"{describe_difference(answer, now, again='now')}"
                )
        return answer


async def replay_match(
    prepared: Prepared,
    whole: WholeMatch,
    quotation_secret: str,
    works: Mapping[str, Any],
    memories: RecallCheck | None = None,
) -> list[tuple[str, str]]:
    """Where the replay of a match differs from its record."""
    match, messages, calls = whole.match, whole.messages, whole.calls
    if match.item is not None and match.item not in prepared.items:
        return [("replay", f"item {shorten(match.item)} is not among the run's items")]
    tape = MemoryRecord()
    for call in calls:
        tape.calls[call.round, call.seat, call.attempt] = call
    tape.effects = dict(whole.effects)
    replay = Replay(
        prepared.task,
        {seat: NoParticipant() for seat in match.seats},
        quotation_key=derive_match_key(quotation_secret, match.number),
        seed=match.seed,
        item=prepared.items[match.item] if match.item is not None else None,
        prompts=prepared.prompts,
        record=tape,
        standardise=prepared.config.standardise,
        works=works,
        draw_order=order_of_draws(prepared.config, match.spec),
    )
    try:
        again = await replay.play()
    except ParleyError as wrong:
        return [*(("works", doubt) for doubt in replay.doubts), ("replay", str(wrong))]
    used = {(m.round, m.sender, m.attempt) for m in tape.messages if m.kind == "reply" and m.sender}
    # copied matches may last longer than the new judges let them
    asks = prepared.config.is_live_role
    wanted = {call for call in tape.calls if asks(call[1].role)} | used
    replayed = [message_facts(message) for message in tape.messages]
    end = {"state": again.state, "reason": again.reason, "rounds": again.rounds}
    compared: dict[str, tuple[Any, Any]] = {
        "the referee's messages": (
            referee_messages(messages),
            referee_messages(replayed),
        ),
        "replies": (
            list_replies(messages),
            list_replies(replayed),
        ),
        "calls": (list_calls(wanted), list_calls(used)),
        "scores": (
            whole.scores,
            {seat: by for seat, by in again.scores.items() if by},
        ),
        "state, reason or rounds": (
            {"state": match.state, "reason": match.reason or "", "rounds": match.rounds},
            end,
        ),
        "violations": (
            [
                {name: to_plain_data(getattr(fault, name)) for name in VIOLATION}
                for fault in whole.violations
            ],
            [
                {name: to_plain_data(getattr(fault, name)) for name in VIOLATION}
                for fault in again.violations
            ],
        ),
        "notes": (
            [note_facts(note) for note in whole.notes],
            [note_facts(note) for note in again.notes],
        ),
    }
    departures = [
        f"{what} differ: {describe_difference(old, new)}"
        for what, (old, new) in compared.items()
        if old != new
    ]
    recalled = memories.find_faults(match, replay.pool.conversations, calls) if memories else ()
    return [
        *(("works", doubt) for doubt in replay.doubts),
        *(("replay", departure) for departure in departures),
        *(("recalled", fault) for fault in recalled),
    ]


def message_facts(message: Message) -> dict[str, Any]:
    """A message in the form in which a record has it."""
    round, kind, sender, audience, content, attempt = message
    return {
        "round": round,
        "kind": kind,
        "sender": None if sender is None else sender.key,
        "audience": [seat.key for seat in audience],
        "content": content if isinstance(content, str) else to_plain_data(content),
        "attempt": attempt,
    }


def note_facts(note: NoteRow | WrittenNote) -> dict[str, Any]:
    """The facts of a note that are compared; analyses find notes by their kind."""
    return {"round": note.round, **note.facts, "kind of note": note.kind or "none"}


def referee_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The referee's messages in order, each with its round, kind and audience."""
    return [
        {f"round {each['round']}, {each['kind']} to {', '.join(each['audience'])}": each["content"]}
        for each in messages
        if each["kind"] != "reply"
    ]


def list_replies(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The replies in order, each with the seats that could read it immediately (there should be
    none)."""
    said = [each for each in messages if each["kind"] == "reply"]
    early = [
        f", read by {', '.join(each['audience'])}" if each["audience"] else "" for each in said
    ]
    return [
        f"round {m['round']}, {m['sender']}, attempt {m['attempt'] + 1}{read}"
        for m, read in zip(said, early, strict=True)
    ]


def list_calls(calls: set[tuple[int, Seat, int]]) -> list[str]:
    return [
        f"round {round}, {seat.key}, attempt {attempt + 1}"
        for round, seat, attempt in sorted(calls)
    ]


def describe_difference(
    kept: Any, found: Any, record: str = "on record", again: str = "in the replay", at: str = ""
) -> str:
    """The first place where two records differ, and what each has there."""
    if isinstance(kept, dict) and isinstance(found, dict):
        key = next(
            key for key in (*kept, *found) if kept.get(key, NOTHING) != found.get(key, NOTHING)
        )
        below = f"{at} {to_plain_data(key)}"
        return describe_difference(
            kept.get(key, NOTHING), found.get(key, NOTHING), record, again, below
        )
    if isinstance(kept, list) and isinstance(found, list):
        pairs = enumerate(zip_longest(kept, found, fillvalue=NOTHING), 1)
        number, (one, other) = next((number, pair) for number, pair in pairs if pair[0] != pair[1])
        return describe_difference(one, other, record, again, f"{at} {number}")
    where = f"{at.strip()}: " if at else ""
    if isinstance(kept, str) and isinstance(found, str):
        apart = (
            at for at, (one, other) in enumerate(zip(kept, found, strict=False)) if one != other
        )
        begin = max(0, next(apart, min(len(kept), len(found))) - 20)
        kept, found = (("…" if begin else "") + text[begin:] for text in (kept, found))
    return f"{where}{record} {describe_value(kept)}, {again} {describe_value(found)}"


def describe_value(value: Any) -> str:
    """A value, shortened for a message."""
    return (
        "nothing" if value is NOTHING else shorten(repr(value) if isinstance(value, str) else value)
    )
