"""The narrow waist: a request goes to a provider, a reply comes back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from parley.rules.pool import Content, Seat, Turn, View

Finish: TypeAlias = Literal["stop", "length", "filter", "other"]
THOUGHT = re.compile(
    r"\s*<(think|thinking|thought|reasoning)>(.*?)(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE
)
TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as counted by the endpoint; None if it did not report them."""

    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    tokens_reasoning: int | None = None
    tokens_written: int | None = None  # of the input, put into a cache: some charge more for that


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class DeviceSetup:
    """How Parley runs a model on this machine."""

    device: str  # its name, such as NVIDIA H200; CPU for the processor
    kind: Literal["gpu", "cpu"]
    engine: str  # how replies are generated
    dtype: str = ""  # of the weights
    attention: str = ""  # the function that computes attention
    batch: int | None = None  # replies generated at the same time, at most
    pool_tokens: int | None = None  # tokens whose keys and values fit into memory


class DeviceUse(NamedTuple):
    """The time that a device worked on one reply. What several replies share is divided among
    them, so that the times of all replies add up."""

    setup: DeviceSetup
    seconds: float


@dataclass(slots=True)
class Reply:
    """A reply: its text, and facts about the call."""

    content: Content
    reasoning: str = ""
    finish: Finish = "stop"
    usage: Usage = NO_USAGE
    model_served: str | None = None  # as the endpoint names it
    # how the endpoint names this answer, this request, and the system that gave it
    response_id: str | None = None
    request_id: str | None = None
    system_fingerprint: str | None = None
    latency: float | None = None  # seconds
    provider_state: Any = (
        None  # what this provider wants back with the next turn; nobody else sees it
    )
    sent: str | None = None  # digest of demonstrations put into the prompt
    left_out: tuple[str, ...] = ()  # options that were set and that the endpoint did not take
    # of the tokens that could have been the first, where they were asked for
    logprobs: Mapping[str, float] | None = None
    device: DeviceUse | None = None  # of a model that Parley itself runs on this machine


class CallPlace(NamedTuple):
    """Where a reply belongs in the record of a run."""

    match: int
    round: int
    seat: str  # its key
    attempt: int


class Call:
    """One call of a participant on its way, and the limits that hold for its requests.

    Whoever sends requests awaits `wait_for_rate`, then `before_request`, and sends. Afterwards the
    request has an answer, or is `refused` or `unanswered`. This class lets everything pass: tests,
    `parley doctor` and forecasts use it as it is.
    """

    __slots__ = ()

    def place(self) -> CallPlace | None:
        """Where the reply belongs; None outside a run."""
        return None

    def run_location(self) -> str:
        """The file of the run, or its place in a database; empty outside a run."""
        return ""

    def match_number(self) -> int | None:
        """The number of the match that the call belongs to; None outside a run."""
        return None

    def seat_asked(self, seat: Seat) -> None:
        """Report that a seat begins to answer a question, in one attempt or several."""

    def seat_answered(self, seat: Seat) -> None:
        """Report that a seat has answered, or failed to."""

    def reserved_usd(self) -> float:
        """The money that is reserved for the request."""
        return 0.0

    def deferred(self) -> None:
        """Report that the request is on record and its reply can be fetched later, also by another
        process: it is not lost if this one ends."""

    async def wait_for_rate(self) -> None:
        """Wait until the rate limit of the model allows one more request."""

    async def before_request(self) -> None:
        """Count a request (also a retry) and reserve its cost. Raises Halted if no request may be
        sent."""

    def check_running(self) -> None:
        """Raise Halted once the run is stopping."""

    def refused(self, fault: str) -> None:
        """Report that the request was rejected, so nothing is paid for it."""

    def unanswered(self, fault: str) -> None:
        """Report that the request failed after it was sent: it may be billed without an answer."""

    def waiting(self, endpoint_down: bool) -> None:
        """Report that the call starts or stops waiting for an endpoint that is down; may be
        repeated."""

    def notice(self, text: str) -> None:
        """Show the user a text; repeated texts are shown only once."""


UNLIMITED = Call()


@dataclass(slots=True)
class Request:
    """A request to a model: the conversation, and the schema of the answer if there is one."""

    turns: list[Turn]
    schema: Mapping[str, Any] | None = None
    # where chance begins for this call: endpoints that take a seed are sent one made of it
    sampling_seed: bytes = b""
    # of how many tokens that could be the first the log-probability is wanted
    logprobs: int | None = None
    call: Call = field(default=UNLIMITED, repr=False, compare=False)


class Provider(Protocol):
    """Serves one model."""

    async def complete(self, request: Request) -> Reply: ...

    async def close(self) -> None: ...


def split_thinking(text: str) -> tuple[str, str]:
    """Split a reply into its text and the thinking that some models write before it."""
    if "</" not in text and "<" not in text[:80]:
        return text, ""
    thoughts, end = [], 0
    while found := THOUGHT.match(text, end):
        thoughts.append(found[2].strip())
        end = found.end()
    # The opening tag was part of the template: prose up to the closing one. An object that quotes a
    # tag is no thought.
    if (
        not thoughts
        and (found := TAG.search(text))
        and found[1]
        and not text.lstrip().startswith(("{", "["))
    ):
        thoughts.append(text[: found.start()].strip())
        end = found.end()
    return text[end:].lstrip() if thoughts else text, "\n".join(filter(None, thoughts))


class Participant(Protocol):
    """Answers a view. A bot has `sees_item` and can also see the item and the random seed."""

    sees_item: bool

    async def reply(self, view: View, call: Call) -> Reply | str: ...

    async def close(self) -> None: ...
