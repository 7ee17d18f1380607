"""People vote in the browser, without names, behind a personal link: on pairs of conversations, or
on single conversations of a run that waits for this.

Every form is answered by a redirect, after the vote is on disk. So a reload, a second click or
another tab can never give a second vote.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from parley.annotation.ballots import Voter
from parley.annotation.voters import find_invited, open_invited
from parley.errors import ParleyError, UsageError
from parley.providers._secrets import redact
from parley.store.types import Invitation, VerdictInvitation
from parley.web.app import show_problem, site_of

MOST_FIELDS = 10  # of a form
Fields = Mapping[str, str]
# what a person reads above a ballot, by the name in the address
NOTES = {
    "late": "Your last vote was not counted: {late}.",
    "voted": "You have already voted on this {noun}, perhaps in another tab. Your first vote "
    "counts. To change it, vote again.",
}


async def answer_voter(request: Request) -> Response:
    """A person with a personal link asks for the next ballot, or sends a form. A form is read only
    if the link is right. Errors are shown in the terminal of the server: they may name runs."""

    def find() -> Invitation | VerdictInvitation | None:
        try:
            return find_invited(site_of(request).store, request.path_params["secret"])
        except UsageError:  # there is no file of votes
            return None

    try:
        invited = await run_in_threadpool(find)
        if invited is None:
            raise HTTPException(404)
        if invited.ended:
            return say_ended(request)
        fields = await read_fields(request) if request.method == "POST" else None
        return await run_in_threadpool(serve_voter, request, invited, fields)
    except ParleyError as wrong:
        return say_unavailable(request, wrong)


def serve_voter(
    request: Request, invited: Invitation | VerdictInvitation, fields: Fields | None
) -> Response:
    """The answer to a visit (None) or to a form."""
    with open_invited(site_of(request).store, invited) as voter:
        if fields is None:
            return show_ballot(request, voter)
        return accept_form(request, voter, fields)


def show_ballot(request: Request, voter: Voter[Any]) -> Response:
    """The ballot that the address names, if this person may change their vote on it; else the next
    one, or thanks."""
    own, wanted = voter.own_votes(), request.query_params
    place = voter.parse_place(wanted.get("ballot", ""))
    voted = None if place is None else own.get(place)
    skipped = voter.skipped()
    if voted is None:
        place = voter.offer(skipped)
    before = [each for each in own if each != place]
    if voted is not None:  # those that came before this one
        before = before[: list(own).index(place)]
    remaining = set(voter.remaining())
    note = NOTES.get(wanted.get("note", ""), "")
    facts: dict[str, Any] = {
        "address": address_of(request),
        "voter": voter,
        "given": len(own),
        "total": len(own) + len(remaining),
        "earlier": voter.write_place(before[-1]) if before else None,
        "note": note.format(late=voter.late, noun=voter.noun),
    }
    site = site_of(request)
    if place is None:
        asleep = len(remaining & {*skipped})
        return site.page("vote_thanks.html", skipped=asleep, left=len(remaining), **facts)
    template, shown = f"vote_{voter.noun}.html", voter.read(place)
    return site.page(template, ballot=voter.write_place(place), shown=shown, voted=voted, **facts)


def accept_form(request: Request, voter: Voter[Any], fields: Fields) -> Response:
    """Carry out a form. Once this returns, a vote is on disk."""
    said, place = fields.get("choice", ""), voter.parse_place(fields.get("ballot", ""))
    address = address_of(request)
    if said == "again" and voter.can_skip:
        voter.forget_skipped()
        return RedirectResponse(address, 303)
    if place is None:
        return say_unreadable(request)
    if said == "skip" and voter.can_skip:
        voter.skip(place)
        return RedirectResponse(address, 303)
    if said not in [choice.value for choice in voter.choices]:
        return say_unreadable(request)
    try:
        found = voter.vote(place, said, change="change" in fields)
    except UsageError:
        if place not in voter.own_votes():
            return say_unreadable(request)
        return RedirectResponse(f"{address}?ballot={voter.write_place(place)}&note=voted", 303)
    return RedirectResponse(f"{address}?note=late" if found == "not needed" else address, 303)


def address_of(request: Request) -> str:
    """The personal link, without the server."""
    return f"/vote/{request.path_params['secret']}"


async def read_fields(request: Request) -> dict[str, str]:
    """The fields of a form; empty if it cannot be read."""
    body = await request.body()
    try:
        return dict(parse_qsl(body.decode(), max_num_fields=MOST_FIELDS))
    except ValueError:
        return {}


def say_ended(request: Request) -> Response:
    """The page behind a link that was ended or replaced."""
    lines = [
        "This link no longer works. The votes that you gave are kept.",
        "If you want to go on, ask the person who invited you for a new link.",
    ]
    return show_problem(request, 410, "This invitation has ended", lines)


def say_unavailable(request: Request, wrong: ParleyError) -> Response:
    """The page if runs or votes cannot be read; the terminal of the server shows the reason."""
    print(f"voting: {redact(str(wrong))}", file=sys.stderr)
    lines = [
        "Your votes so far are kept.",
        "Please tell the person who invited you: the terminal of the server shows the reason.",
    ]
    return show_problem(request, 503, "The next conversation cannot be shown now", lines)


def say_unreadable(request: Request) -> Response:
    """The page after a form that no page of ours sends."""
    lines = ["Your votes so far are kept.", "Open your personal link again, and go on."]
    return show_problem(request, 400, "This form cannot be read", lines)


ROUTES = [Route("/vote/{secret}", answer_voter, methods=["GET", "POST"])]
