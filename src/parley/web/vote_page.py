"""People vote in the browser: pairs without names, behind a personal link."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from parley.annotation.pair_ballots import (
    cast_vote,
    count_open_pairs,
    find_invitation,
    list_open_pairs,
    offer_pair,
)
from parley.annotation.sheets import Sheet, SheetFormat, format_of_runs, make_sheet
from parley.annotation.study import open_runs
from parley.errors import UsageError
from parley.statistics.preferences import CHOICES, ConversationPair, Preference
from parley.store import Annotator, Invitation, Store, Study, VoteStore
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
    return await answer_person(request, find_link, serve_voter)


def find_link(store: Store, secret: str) -> Invitation | None:
    """The invitation of a personal link."""
    with store.open_votes(read_only=True) as votes:
        return find_invitation(votes, secret)


def serve_voter(request: Request, invited: Invitation, fields: Fields | None) -> Response:
    with site_of(request).store.open_votes() as votes:
        return PairVotingRequest(request, votes, invited.study, invited.who).answer(fields)


class PairVotingRequest(VotingRequest):
    """A request of a person who votes on pairs of conversations."""

    folder, notes = "/vote", NOTES

    def __init__(self, request: Request, votes: VoteStore, study: Study, who: Annotator) -> None:
        super().__init__(request)
        self.votes, self.study, self.who = votes, study, who

    def show(self) -> Response:
        """The pair that the address names, if this person may change their vote on it; else the
        next pair, or thanks."""
        wanted, own = self.request.query_params, self.votes.votes_of(self.study, self.who)
        number = read_number(wanted.get("pair"))
        if number in own:
            assert number is not None
            return self._show_pair(number, own, own[number])
        skipped = self.votes.skipped_pairs(self.study, self.who)
        found = offer_pair(self.votes, self.study, self.who, skipped)
        if found is not None:
            return self._show_pair(found, own)
        left = list_open_pairs(self.votes, self.study, self.who)
        return self.site.page(
            "vote_thanks.html",
            address=self.address,
            given=len(own),
            skipped=len(skipped & left),
            left=len(left),
            earlier=next(reversed(own), None),
            note=self.note,
        )

    def _show_pair(
        self, number: int, own: Mapping[int, Preference], voted: Preference | None = None
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
            note=self.note,
        )

    def _choices(self) -> list[tuple[Preference, str]]:
        """The votes that the study allows, each with its words."""
        return [each for each in BUTTONS.items() if self.study.ties or each[0] != "tie"]

    def accept_form(self, fields: Fields) -> Response:
        said, number = fields.get("choice"), read_number(fields.get("pair"))
        if said == "again":
            self.votes.forget_skipped(self.study, self.who)
            return self.redirect()
        known = [*(choice for choice, _ in self._choices()), "skip"]
        if number not in self.votes.pairs(self.study) or said not in known:
            return say_unreadable(self.request)
        assert number is not None
        if said == "skip":
            self.votes.skip_pair(self.study, self.who, number)
            return self.redirect()
        choice = next(each for each in CHOICES if each == said)
        try:
            found = cast_vote(
                self.votes, self.study, number, self.who, choice, change="change" in fields
            )
        except UsageError:
            if number not in self.votes.votes_of(self.study, self.who):
                raise
            return self.redirect(f"?pair={number}&note=voted")
        return self.redirect("?note=settled" if found == "not needed" else "")


def read_sheet(store: Store, number: int, pair: ConversationPair) -> tuple[SheetFormat, Sheet]:
    """What people see of a pair."""
    refs = {side.run: find_voted_run(store, side.run) for side in (pair.a, pair.b)}
    with open_runs(list(refs.values())) as runs:
        sheet = format_of_runs(runs)
    return sheet, make_sheet(number, pair, refs, sheet)


ROUTES = [Route("/vote/{secret}", answer_voter, methods=["GET", "POST"])]
