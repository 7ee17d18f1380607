"""People say in the browser whether a conversation was a success. Runs with `feedback=people` wait
for these votes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
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
from parley.errors import ParleyError, UsageError
from parley.memory.feedback import VERDICT_CHOICES, VerdictChoice
from parley.rules.pool import Seat
from parley.store import RunReader, Store, VerdictInvitation, VerdictVoteStore
from parley.web.app import Site, site_of
from parley.web.vote_page import (
    find_voted_run,
    read_fields,
    read_number,
    say_ended,
    say_unavailable,
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
    fields = await read_fields(request) if request.method == "POST" else None
    return await run_in_threadpool(answer_about_run, request, fields)


def answer_about_run(request: Request, fields: Mapping[str, str] | None) -> Response:
    """The next page. The run is opened for each answer only: it may go on at any time."""
    site = site_of(request)
    try:
        invited = find_single_link(site.store, request.path_params["secret"])
        if invited is None:
            raise HTTPException(404)
        if invited.ended:
            return say_ended(request)
        ref = find_voted_run(site.store, invited.run)
        with site.store.read(ref) as reader, site.store.open_verdict_votes(ref) as votes:
            booth = SingleBooth(site, request, votes, reader, invited.annotator)
            return booth.show() if fields is None else booth.take(fields)
    except ParleyError as wrong:
        return say_unavailable(request, wrong)


def find_single_link(store: Store, secret: str) -> VerdictInvitation | None:
    """The invitation of a personal link; None where nobody has been invited."""
    try:
        votes = store.open_verdict_votes(read_only=True)
    except UsageError:  # there is no file of votes
        return None
    with votes:
        return find_verdict_invitation(votes, secret)


class SingleBooth:
    """One person before one request: the conversation they see, and the vote they send."""

    def __init__(
        self,
        site: Site,
        request: Request,
        votes: VerdictVoteStore,
        reader: RunReader,
        name: str,
    ) -> None:
        self.site, self.request, self.votes = site, request, votes
        self.reader, self.name = reader, name
        self.run = reader.info.id
        self.open = list_open_places(reader)
        self.address = f"/vote/single/{request.path_params['secret']}"

    def show(self) -> Response:
        """The conversation that the address names, if this person may change their vote on it; else
        the next one, or thanks."""
        wanted = self.request.query_params
        given = self.votes.votes_of(self.run, self.name)
        own = [place for place in given if place in self.open]
        place = read_voted_place(wanted.get("match"), wanted.get("seat"))
        note = NOTES.get(wanted.get("note", ""), "")
        changes = place in own
        if not changes:
            place = choose_place(self.open, self.votes.votes(self.run), self.name)
        before = own[: own.index(place)] if changes and place is not None else own
        earlier = before[-1] if before else None
        facts: dict[str, Any] = {
            "address": self.address,
            "given": len(own),
            "earlier": earlier,
            "note": note,
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

    def take(self, fields: Mapping[str, str]) -> Response:
        """The vote of a form. Once this returns, it is on disk."""
        place = read_voted_place(fields.get("match"), fields.get("seat"))
        choice = next((each for each in VERDICT_CHOICES if each == fields.get("choice")), None)
        if place is None or choice is None:
            return say_unreadable(self.request)
        try:
            change = "change" in fields
            cast_verdict(self.votes, self.reader, place, self.name, choice, change)
        except UsageError:
            if place not in self.open:
                return self._go_on("?note=used")
            number, seat = place
            return self._go_on(f"?match={number}&seat={seat.key}&note=voted")
        return self._go_on()

    def _go_on(self, query: str = "") -> Response:
        """To the next page."""
        return RedirectResponse(self.address + query, 303)


def read_voted_place(match: str | None, seat: str | None) -> Place | None:
    """The match and the seat in an address or a form; None if they are not there."""
    number = read_number(match)
    try:
        return None if number is None or not seat else (number, Seat.of(seat))
    except ValueError:
        return None


ROUTES = [Route("/vote/single/{secret}", answer_judge, methods=["GET", "POST"])]
