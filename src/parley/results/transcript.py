"""A match read back from its record: what each seat saw, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from parley.match.record import RecordedCall
from parley.rules.pool import Pool, Seat, SeatHistory


def rebuild_views(
    messages: Sequence[dict[str, Any]], calls: Sequence[RecordedCall], seats: Iterable[Seat]
) -> tuple[dict[str, SeatHistory], list[str]]:
    """Every seat's view, rebuilt message by message, and where it differs from the digests that
    the calls recorded."""
    kept = {(call.round, call.seat.key, call.attempt): call for call in calls}
    words = {key: call.reply.content for key, call in kept.items()}
    pool = Pool(seats)
    faults: list[str] = []

    def shown(seat: str, round: int, attempt: int) -> None:
        call = kept.get((round, seat, attempt))
        if call is not None and call.view_digest != pool.conversations[Seat.of(seat)].digest:
            faults.append(
                f"round {round}, {seat}: the recorded prompt differs from the one that was sent"
            )

    for message in messages:
        if message["kind"] == "reply":
            said = words.get((message["round"], message["sender"], message["attempt"]), "")
            pool.conversations[Seat.of(message["sender"])].answer(said)
            continue
        for seat in message["audience"]:
            conversation = pool.conversations[Seat.of(seat)]
            if message["kind"] == "tell":
                conversation.waiting.append(message["content"])
            else:
                conversation.put(message["content"])
                shown(seat, message["round"], message["attempt"])
    return {seat.key: conversation for seat, conversation in pool.conversations.items()}, faults
