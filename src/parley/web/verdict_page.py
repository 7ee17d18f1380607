"""People say in the browser whether a conversation was a success. Runs with `feedback=people` wait
for these votes."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from parley.annotation.verdict_ballots import (
    CRITERION,
    Place,
    cast_verdict,
    choose_place,
    find_verdict_invitation,
    list_open_places,
    read_conversation,
)
from parley.errors import UsageError
from parley.memory.feedback import VERDICT_CHOICES, VerdictChoice
from parley.rules.pool import Seat
from parley.store import Store, VerdictInvitation
from parley.store.reader import RunReader
from parley.store.verdict_votes import VerdictVoteStore
from parley.web.app import site_of
from parley.web.voting import (
    Fields,
    VotingRequest,
    answer_person,
    find_voted_run,
    read_number,
    say_unreadable,
)

# the votes, in the order of their keys
BUTTONS: dict[VerdictChoice, str] = {"yes": "Yes", "no": "No", "unsure": "Cannot tell"}
# what a person reads above a conversation, by the name in the address
NOTES = {
    "used": "The run has gone on in the meantime, so your last vote could not be counted.",
    "voted": "You have already voted on this conversation, perhaps in another tab. Your first vote "
    "counts. To change it, vote again.",
}


async def answer_judge(request: Request) -> Response:
    """A person with a personal link asks for the next conversation, or sends a form."""
    return await answer_person(request, find_single_link, serve_judge)


def find_single_link(store: Store, secret: str) -> VerdictInvitation | None:
    """The invitation of a personal link."""
    with store.open_verdict_votes(read_only=True) as votes:
        return find_verdict_invitation(votes, secret)


def serve_judge(request: Request, invited: VerdictInvitation, fields: Fields | None) -> Response:
    """The run is opened for each answer only: it may go on at any time."""
    store = site_of(request).store
    ref = find_voted_run(store, invited.run)
    with store.read(ref) as reader, store.open_verdict_votes(ref) as votes:
        return SingleVotingRequest(request, votes, reader, invited.annotator).answer(fields)


class SingleVotingRequest(VotingRequest):
    """A request of a person who votes on single conversations."""

    folder, notes = "/vote/single", NOTES

    def __init__(
        self, request: Request, votes: VerdictVoteStore, reader: RunReader, name: str
    ) -> None:
        super().__init__(request)
        self.votes, self.reader, self.name = votes, reader, name
        self.run = reader.info.id
        self.open = list_open_places(reader)

    def show(self) -> Response:
        """The conversation that the address names, if this person may change their vote on it; else
        the next one, or thanks."""
        wanted = self.request.query_params
        given = self.votes.votes_of(self.run, self.name)
        own = [place for place in given if place in self.open]
        place = read_voted_place(wanted.get("match"), wanted.get("seat"))
        changes = place in own
        if not changes:
            place = choose_place(self.open, self.votes.votes(self.run), self.name)
        before = own[: own.index(place)] if changes and place is not None else own
        earlier = before[-1] if before else None
        facts: dict[str, Any] = {
            "address": self.address,
            "given": len(own),
            "earlier": earlier,
            "note": self.note,
        }
        if place is None:
            return self.site.page("verdict_thanks.html", waiting=bool(self.open), **facts)
        return self.site.page(
            "verdict.html",
            place=place,
            shown=read_conversation(self.reader, place),
            total=len(self.open),
            voted=given[place] if changes else None,
            choices=list(BUTTONS.items()),
            criterion=CRITERION,
            **facts,
        )

    def accept_form(self, fields: Fields) -> Response:
        place = read_voted_place(fields.get("match"), fields.get("seat"))
        choice = next((each for each in VERDICT_CHOICES if each == fields.get("choice")), None)
        if place is None or choice is None:
            return say_unreadable(self.request)
        try:
            change = "change" in fields
            cast_verdict(self.votes, self.reader, place, self.name, choice, change)
        except UsageError:
            if place not in self.open:
                return self.redirect("?note=used")
            number, seat = place
            return self.redirect(f"?match={number}&seat={seat.key}&note=voted")
        return self.redirect()


def read_voted_place(match: str | None, seat: str | None) -> Place | None:
    """The match and the seat in an address or a form; None if they are not there."""
    number = read_number(match)
    try:
        return None if number is None or not seat else (number, Seat.of(seat))
    except ValueError:
        return None


ROUTES = [Route("/vote/single/{secret}", answer_judge, methods=["GET", "POST"])]
