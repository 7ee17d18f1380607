"""What each seat of a match read and wrote, rebuilt from the record."""

from __future__ import annotations

from parley.errors import unknown_name
from parley.rules.pool import Pool, Seat, SeatHistory
from parley.store.types import MatchRow, WholeMatch


def find_seat(match: MatchRow, text: str) -> Seat:
    """Find a seat by its name (`Player 1`), its key (`players.1`), or an alias with one seat."""
    wanted = text.casefold()
    for seat in match.seats:
        if wanted in (seat.key.casefold(), str(seat).casefold()):
            return seat
    held = [seat for seat, alias in match.seats.items() if alias == text]
    if len(held) == 1:
        return held[0]
    names = [str(seat) for seat in match.seats]
    raise unknown_name("seat", text, [*names, *dict.fromkeys(match.seats.values())])


def rebuild_views(whole: WholeMatch) -> tuple[dict[str, SeatHistory], list[str]]:
    """Every seat's view, rebuilt message by message, and where it differs from the digests that
    the calls recorded."""
    kept = {(call.round, call.seat.key, call.attempt): call for call in whole.calls}
    words = {key: call.reply.content for key, call in kept.items()}
    pool = Pool(whole.match.seats)
    faults: list[str] = []

    def shown(seat: str, round: int, attempt: int) -> None:
        call = kept.get((round, seat, attempt))
        if call is not None and call.view_digest != pool.conversations[Seat.of(seat)].digest:
            faults.append(
                f"round {round}, {seat}: the recorded prompt differs from the prompt that was sent"
            )

    for message in whole.messages:
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
