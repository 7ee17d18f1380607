"""People vote in the browser: pairs without names, behind a personal link.

Every form is answered by a redirect, after the vote is on disk. So a reload, a second click or
another tab can never give a second vote.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from parley.annotation.ballots import (
    cast_vote,
    count_open_pairs,
    find_invitation,
    list_open_pairs,
    offer_pair,
)
from parley.annotation.sheets import Sheet, SheetFormat, format_of_runs, make_sheet
from parley.annotation.study import open_runs
from parley.errors import ParleyError, StoreError, UsageError
from parley.providers._secrets import redact
from parley.statistics.preferences import CHOICES, ConversationPair, Preference
from parley.store import Annotator, Invitation, RunInfo, RunRef, Store, Study, VoteStore
from parley.web.app import Site, show_problem, site_of

MOST_FIELDS = 10  # of a form
# the votes, in the order of their keys
BUTTONS: dict[Preference, str] = {"A": "A is better", "B": "B is better", "tie": "Equal"}
# what a person reads above a pair, by the name in the address
NOTES = {
    "settled": "Other people settled the last pair while you were reading it, so your vote on it "
    "was not needed. Go on with this one.",
    "voted": "You have already voted on this pair, perhaps in another tab. Your first vote counts. "
    "To change it, vote again.",
}


async def answer_voter(request: Request) -> Response:
    """A person with a personal link asks for the next pair, or sends a form."""
    fields = await read_fields(request) if request.method == "POST" else None
    return await run_in_threadpool(answer, request, fields)


async def read_fields(request: Request) -> dict[str, str]:
    """The fields of a form; empty if it cannot be read."""
    body = await request.body()
    try:
        return dict(parse_qsl(body.decode(), max_num_fields=MOST_FIELDS))
    except ValueError:
        return {}


def answer(request: Request, fields: Mapping[str, str] | None) -> Response:
    """The next page. Errors are shown in the terminal of the server: they may name runs."""
    site = site_of(request)
    try:
        invited = find_link(site.store, request.path_params["secret"])
        if invited is None:
            raise HTTPException(404)
        if invited.ended:
            return say_ended(request)
        with site.store.open_votes() as votes:
            booth = Booth(site, request, votes, invited.study, invited.who)
            return booth.show() if fields is None else booth.take(fields)
    except ParleyError as wrong:
        return say_unavailable(request, wrong)


def say_ended(request: Request) -> Response:
    """The page behind a link that was ended or replaced."""
    told = [
        "This link no longer works. The votes that you gave are kept.",
        "If you want to go on, ask the person who invited you for a new link.",
    ]
    return show_problem(request, 410, "This invitation has ended", told)


def say_unavailable(request: Request, wrong: ParleyError) -> Response:
    """The page if runs or votes cannot be read; the terminal of the server shows the reason."""
    print(f"voting: {redact(str(wrong))}", file=sys.stderr)
    told = [
        "Your votes so far are kept.",
        "Please tell the person who invited you: the terminal of the server shows the reason.",
    ]
    return show_problem(request, 503, "The next conversation cannot be shown now", told)


def say_unreadable(request: Request) -> Response:
    """The page after a form that no page of ours sends."""
    told = ["Your votes so far are kept.", "Open your personal link again, and go on."]
    return show_problem(request, 400, "This form cannot be read", told)


def find_link(store: Store, secret: str) -> Invitation | None:
    """The invitation of a personal link; None where nobody has been invited."""
    try:
        votes = store.open_votes(read_only=True)
    except UsageError:  # there is no file of votes
        return None
    with votes:
        return find_invitation(votes, secret)


class Booth:
    """One person before one request: what they see, and what they send."""

    def __init__(
        self, site: Site, request: Request, votes: VoteStore, study: Study, who: Annotator
    ) -> None:
        self.site, self.request = site, request
        self.votes, self.study, self.who = votes, study, who
        self.address = f"/vote/{request.path_params['secret']}"

    def show(self) -> Response:
        """The pair that the address names, if this person may change their vote on it; else the
        next pair, or thanks."""
        wanted, own = self.request.query_params, self.votes.votes_of(self.study, self.who)
        number = read_number(wanted.get("pair"))
        note = NOTES.get(wanted.get("note", ""), "")
        if number in own:
            assert number is not None
            return self._show_pair(number, own, note, own[number])
        skipped = self.votes.skipped_pairs(self.study, self.who)
        found = offer_pair(self.votes, self.study, self.who, skipped)
        if found is not None:
            return self._show_pair(found, own, note)
        left = list_open_pairs(self.votes, self.study, self.who)
        return self.site.page(
            "vote_thanks.html",
            address=self.address,
            given=len(own),
            skipped=len(skipped & left),
            left=len(left),
            earlier=next(reversed(own), None),
            note=note,
        )

    def _show_pair(
        self, number: int, own: Mapping[int, Preference], note: str, voted: Preference | None = None
    ) -> Response:
        """A pair with its buttons; `voted` is the vote that may be changed."""
        pair = self.votes.pairs(self.study)[number]
        sheet, shown = read_sheet(self.site.store, number, pair)
        before = [each for each in own if each != number]
        if voted is not None:  # those that came before this one
            before = list(own)[: list(own).index(number)]
        left = count_open_pairs(self.votes, self.study, self.who)
        return self.site.page(
            "vote.html",
            address=self.address,
            number=number,
            shown=shown,
            sheet=sheet,
            choices=self._choices(),
            voted=voted,
            given=len(own),
            total=len(own) + left,
            earlier=before[-1] if before else None,
            note=note,
        )

    def _choices(self) -> list[tuple[Preference, str]]:
        """The votes that the study allows, each with its words."""
        return [each for each in BUTTONS.items() if self.study.ties or each[0] != "tie"]

    def take(self, fields: Mapping[str, str]) -> Response:
        """What a form asks for. Once this returns, a vote is on disk."""
        said, number = fields.get("choice"), read_number(fields.get("pair"))
        if said == "again":
            self.votes.forget_skipped(self.study, self.who)
            return self._go_on()
        known = [*(choice for choice, _ in self._choices()), "skip"]
        if number not in self.votes.pairs(self.study) or said not in known:
            return say_unreadable(self.request)
        assert number is not None
        if said == "skip":
            self.votes.skip_pair(self.study, self.who, number)
            return self._go_on()
        choice = next(each for each in CHOICES if each == said)
        try:
            found = cast_vote(
                self.votes, self.study, number, self.who, choice, change="change" in fields
            )
        except UsageError:
            if number not in self.votes.votes_of(self.study, self.who):
                raise
            return self._go_on(f"?pair={number}&note=voted")
        return self._go_on("?note=settled" if found == "not needed" else "")

    def _go_on(self, query: str = "") -> Response:
        """To the next page."""
        return RedirectResponse(self.address + query, 303)


def read_number(text: str | None) -> int | None:
    """The number of a pair in an address or a form; None if there is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def find_voted_run(store: Store, id: str) -> RunRef:
    """The run with this id, also if its file has another name."""
    found = store.find_exact(id)
    if found is not None:
        return found
    renamed = (run.ref for run in store.runs() if isinstance(run, RunInfo) and run.id == id)
    if (ref := next(renamed, None)) is None:
        raise StoreError(f"the run {id} is missing, but people vote on its conversations")
    return ref


def read_sheet(store: Store, number: int, pair: ConversationPair) -> tuple[SheetFormat, Sheet]:
    """What people see of a pair."""
    refs = {side.run: find_voted_run(store, side.run) for side in (pair.a, pair.b)}
    with open_runs(list(refs.values())) as runs:
        sheet = format_of_runs(runs)
    return sheet, make_sheet(number, pair, refs, sheet)


ROUTES = [Route("/vote/{secret}", answer_voter, methods=["GET", "POST"])]
