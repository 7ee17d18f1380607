"""What the two voting pages share: personal links, forms, and the answers to what goes wrong.

Every form is answered by a redirect, after the vote is on disk. So a reload, a second click or
another tab can never give a second vote.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, Protocol, TypeVar
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from parley.errors import ParleyError, StoreError, UsageError
from parley.providers._secrets import redact
from parley.store import RunInfo, RunRef, Store
from parley.web.app import Site, show_problem, site_of

MOST_FIELDS = 10  # of a form
Fields = Mapping[str, str]


class InvitedLink(Protocol):
    """What is behind a personal link."""

    @property
    def ended(self) -> bool: ...


Link = TypeVar("Link", bound=InvitedLink)


class VotingRequest(ABC):
    """A request of a person who votes: a visit, or a form."""

    folder: ClassVar[str]  # of the address
    notes: ClassVar[Mapping[str, str]]  # what a person reads above the page, by its short name

    def __init__(self, request: Request) -> None:
        self.request = request
        self.site: Site = site_of(request)
        self.address = f"{self.folder}/{request.path_params['secret']}"
        self.note = self.notes.get(request.query_params.get("note", ""), "")

    @abstractmethod
    def show(self) -> Response:
        """The page for this person."""

    @abstractmethod
    def accept_form(self, fields: Fields) -> Response:
        """Carry out a form. Once this returns, a vote is on disk."""

    def answer(self, fields: Fields | None) -> Response:
        """The answer to a visit (None) or to a form."""
        return self.show() if fields is None else self.accept_form(fields)

    def redirect(self, query: str = "") -> Response:
        """Send the person to the next page."""
        return RedirectResponse(self.address + query, 303)


async def answer_person(
    request: Request,
    find_link: Callable[[Store, str], Link | None],
    serve: Callable[[Request, Link, Fields | None], Response],
) -> Response:
    """The answer to a person with a personal link. A form is read only if the link is right. Errors
    are shown in the terminal of the server: they may name runs."""

    def find() -> Link | None:
        try:
            return find_link(site_of(request).store, request.path_params["secret"])
        except UsageError:  # there is no file of votes
            return None

    try:
        invited = await run_in_threadpool(find)
        if invited is None:
            raise HTTPException(404)
        if invited.ended:
            return say_ended(request)
        fields = await read_fields(request) if request.method == "POST" else None
        return await run_in_threadpool(serve, request, invited, fields)
    except ParleyError as wrong:
        return say_unavailable(request, wrong)


async def read_fields(request: Request) -> dict[str, str]:
    """The fields of a form; empty if it cannot be read."""
    body = await request.body()
    try:
        return dict(parse_qsl(body.decode(), max_num_fields=MOST_FIELDS))
    except ValueError:
        return {}


def read_number(text: str | None) -> int | None:
    """The number of a pair or a match in an address or a form; None if there is none."""
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
