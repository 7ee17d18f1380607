"""People play in the browser: a page behind a personal link shows what the seat sees, and a form
asks for its answer.

Every form is answered after the answer is on record. The page shows nothing but the view of the
seat: no names of models, no other seat's private messages. The person's own scores follow at the
end of the run.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from itertools import groupby
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from parley.participants._desk import Chair, Desk, Fate
from parley.participants._form import AnswerField, AnswerForm, describe_reply
from parley.web.app import site_of

MOST_FIELDS = 200  # of a form
MOST_STREAMS = 8  # open pages of one person that are updated at once
BEAT_SECONDS = 15.0  # how often a stream without news shows that it is alive
SOON_SECONDS = 0.3
LINE_LENGTH = 300  # characters of a one-line entry
# what the page says about an answer to a question that is not open any more
CLOSED: dict[Fate, tuple[str, str]] = {
    "recorded": (
        "You have already answered this question",
        "Your first answer is recorded and counts. This one was not used. Perhaps you sent the "
        "form twice, or answered in another tab.",
    ),
    "saving": (
        "You have already answered this question",
        "Your first answer counts. This one was not used.",
    ),
    "expired": (
        "The time for this question has run out",
        "An empty answer was recorded before yours arrived. Your answer was not used.",
    ),
    "withdrawn": (
        "This question is closed",
        "The run stopped before your answer was recorded, so it was not used. If the run is "
        "resumed, you get a new link and the same question again.",
    ),
}


def find_chair(request: Request) -> Chair:
    """Whose link this is; a page that is not found for every other address."""
    desk: Desk | None = getattr(request.app.state, "desk", None)
    chair = None if desk is None else desk.find(request.path_params["secret"])
    if chair is None:
        raise HTTPException(404)
    return chair


async def show_seat(request: Request) -> Response:
    """What the person sees now. It runs in the event loop of the run, so nothing changes while the
    page is made."""
    return show_chair(request, find_chair(request))


def show_chair(request: Request, chair: Chair, fault: str = "", status: int = 200) -> Response:
    """The page of a person: the conversation, and the question if there is one."""
    chair.seen = time.monotonic()
    question = chair.question
    if question is not None and question.fate != "open":
        question = None
    answer = site_of(request).page(
        "play.html",
        status,
        chair=chair,
        address=f"/play/{chair.secret}",
        question=question,
        groups=[] if question is None else group_fields(question.form),
        left=None if question is None else question.seconds_left(),
        fault=fault,
        line_length=LINE_LENGTH,
    )
    if chair.ending:
        chair.farewell.set()
    return answer


def group_fields(form: AnswerForm) -> list[tuple[str, list[tuple[str, str, AnswerField]]]]:
    """The fields by group, each with its id on the page and a note on what may be entered."""
    numbered = [
        (f"f{number}", ". ".join(filter(None, (field.bounds, field.help))), field)
        for number, field in enumerate(form.fields, 1)
    ]
    return [(group, list(each)) for group, each in groupby(numbered, lambda row: row[2].group)]


async def take_answer(request: Request) -> Response:
    """Take the form of a person. The answer is on record before this returns."""
    chair = find_chair(request)
    entries = await read_entries(request)
    number = entries.get("question", "")
    question = chair.question
    if question is None or number != str(question.number) or question.fate != "open":
        return show_closed(request, chair, number, entries)
    given = {name.removeprefix("f."): text for name, text in entries.items()}
    if question.form.is_blank(given):
        return show_chair(request, chair, "The form is empty. Please answer the question.", 422)
    if not await question.give(question.form.write(given)):
        return show_closed(request, chair, number, entries)
    if chair.question is None and not chair.ending:
        await chair.wait_for_change(SOON_SECONDS)  # where only bots play, the next question is here
    return RedirectResponse(f"/play/{chair.secret}#now", 303)


async def read_entries(request: Request) -> dict[str, str]:
    """The fields of a form; empty if it cannot be read."""
    body = await request.body()
    try:
        found = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        return {}
    return {name: text.replace("\r\n", "\n") for name, text in found}


def show_closed(request: Request, chair: Chair, number: str, entries: dict[str, str]) -> Response:
    """Say why an answer was not used, and show it, so that it can be copied."""
    title, told = CLOSED[find_fate(chair, number)]
    written = "\n".join(
        describe_reply(text) for name, text in entries.items() if name.startswith("f.") and text
    )
    return site_of(request).page(
        "play_closed.html",
        409,
        title=title,
        told=told,
        written=written,
        address=f"/play/{chair.secret}",
    )


def find_fate(chair: Chair, number: str) -> Fate:
    """What became of a question of this person; a number that was never given is closed."""
    if chair.question is not None and number == str(chair.question.number):
        return "expired" if chair.question.fate == "expired" else "saving"
    fates = {str(past): fate for past, fate in chair.past.items()}
    return fates.get(number, "withdrawn")


async def follow_seat(request: Request) -> Response:
    """Tell an open page when there is something new, as server-sent events."""
    chair = find_chair(request)
    if chair.streams >= MOST_STREAMS:
        raise HTTPException(429, "Too many open pages")
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    return StreamingResponse(
        stream_versions(chair),
        media_type="text/event-stream",
        headers={"x-accel-buffering": "no"},
    )


async def stream_versions(chair: Chair) -> AsyncIterator[str]:
    """The number of the latest change, whenever it changes. The stream ends with the run."""
    chair.streams += 1
    try:
        sent = chair.version
        yield f"retry: 1000\ndata: {sent}\n\n"
        while not chair.ending or sent != chair.version:
            # something may have changed while the last line was sent
            if sent == chair.version and not await chair.wait_for_change(BEAT_SECONDS):
                yield ": here\n\n"
                continue
            sent = chair.version
            yield f"data: {sent}\n\n"
    finally:
        chair.streams -= 1


ROUTES = [
    Route("/play/{secret}", show_seat, methods=["GET"]),
    Route("/play/{secret}", take_answer, methods=["POST"]),
    Route("/play/{secret}/events", follow_seat, methods=["GET"]),
]
