"""One model behind an address that takes JSON: what all such providers share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from time import perf_counter
from typing import Any, ClassVar

import orjson

from parley.errors import ParticipantError, Rejected
from parley.expect import clip
from parley.pool import Turn, text_of
from parley.providers import capabilities
from parley.providers.capabilities import NOTHING, Capabilities
from parley.providers.keys import address, expanded, key_from, place_of, setting
from parley.providers.protocol import Reply, Request
from parley.providers.transport import Transport

MOST_FORMS = 500  # encoded forms that are kept


@dataclass
class Endpoint:
    """One model behind an address; the fields are the options a user may set."""

    name: str
    _: KW_ONLY
    base_url: str | None = None
    api_key_env: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    structured: bool | None = None  # let the endpoint hold replies to the form that was asked for; None: where it can
    deadline: float = 600.0  # seconds a call may take, retries included
    _transport: Transport = field(init=False, repr=False)
    _known: Capabilities = field(init=False, repr=False)
    _place: str = field(default="", init=False, repr=False)
    _heads: dict[frozenset[str], bytes] = field(default_factory=dict, init=False, repr=False)
    _forms: dict[tuple[str, bytes], bytes] = field(default_factory=dict, init=False, repr=False)

    home: ClassVar[str | None] = None  # the address where nothing else is said
    home_env: ClassVar[str | None] = None
    home_like: ClassVar[str] = "http://HOST:PORT/v1"
    key_env: ClassVar[str | None] = None
    key_needed: ClassVar[bool] = False
    key_header: ClassVar[str] = "Authorization"
    headers: ClassVar[Mapping[str, str]] = {}
    path: ClassVar[str] = ""
    references: ClassVar[bool] = True  # it takes base_url as written, so that errors can name it so
    optional: ClassVar[tuple[str, ...]] = ("temperature", "top_p", "stop")  # options that a model may not take
    forms: ClassVar[tuple[str, ...]] = ("json_schema", "json_object")  # what can hold a reply to a form, the strictest first
    folds: ClassVar[bool] = True  # where there is no system role, its words open the first turn

    def __post_init__(self) -> None:
        base = self.base_url or (self.home_env and setting(self.home_env)) or self.home
        if not base:
            there = f" or {self.home_env} in the environment" if self.home_env else ""
            raise ValueError(f"say where it is served: -M ALIAS.base_url={self.home_like}{there} (model {self.name})")
        key = key_from(self.key_variable(), needed=self.key_needed or bool(self.api_key_env))
        self.stop = tuple(unescaped(text) for text in self.stop or () if text) or None
        base, path = self.route(base)
        url, self._place = address(base, f"base_url of {self.name}", path), place_of(base, path)
        self._transport = Transport(
            url, key, self.deadline, self._place, key_header=self.key_header, headers=dict(self.headers), scope=self.name
        )
        self._known = capabilities.of(url, self.name)

    def key_variable(self) -> str | None:
        """The variable that holds the key."""
        return self.api_key_env or self.key_env

    def route(self, base: str) -> tuple[str, str]:
        """The address as written, and the path behind it."""
        return base, self.path

    async def complete(self, request: Request) -> Reply:
        began, lacks = perf_counter(), self._known.lacks
        while True:  # every turn of it leaves out one feature more, and there are few
            try:
                answer = await self._transport.post(self.body(request, lacks))
                break
            except Rejected as rejected:
                lacks = self.without_what_is_named(rejected, request, lacks)
        if not lacks <= self._known.lacks:
            self._known.learn(lacks)
        reply = self.reply(answer)
        reply.latency = perf_counter() - began
        return reply

    def without_what_is_named(self, rejected: Rejected, request: Request, lacks: frozenset[str]) -> frozenset[str]:
        """What the next request leaves out; a rejection that names no feature of this one stands."""
        if not self._known.lacks <= lacks:  # another call has found out in the meantime
            return lacks | self._known.lacks
        feature = capabilities.named(str(rejected).removeprefix(self._place), self.offered(request, lacks))
        if feature is None:
            raise rejected
        return lacks | {feature}

    def offered(self, request: Request, lacks: frozenset[str]) -> Iterator[str]:
        """The features of a request that it can do without."""
        if self.structured is None and (form := self.form(request, lacks)):
            yield form
        if self.folds and request.turns[0].role == "system" and "system" not in lacks:
            yield "system"
        yield from self.chosen(lacks)

    def chosen(self, lacks: frozenset[str]) -> dict[str, Any]:
        """The options that were set and are taken."""
        values = {name: getattr(self, name) for name in self.optional if name not in lacks}
        return {name: value for name, value in values.items() if value not in (None, "")}

    def form(self, request: Request, lacks: frozenset[str]) -> str:
        """What holds this reply to its form, if anything does."""
        if request.schema is None or self.structured is False:
            return ""
        if self.structured or not lacks:
            return self.forms[0]
        return next((form for form in self.forms if form not in lacks), "")

    def formed(self, request: Request, lacks: frozenset[str]) -> bytes:
        """The part of a request that asks for a form; made once for each."""
        if not (form := self.form(request, lacks)):
            return b""
        key = (form, orjson.dumps(request.schema))
        if (encoded := self._forms.get(key)) is None:
            if len(self._forms) >= MOST_FORMS:
                self._forms.clear()
            assert request.schema is not None
            encoded = self._forms[key] = self.encoded_form(form, request.schema)
        return encoded

    def headed(self, lacks: frozenset[str]) -> bytes:
        """The part of a request that is the same in all of them; made once."""
        if (head := self._heads.get(lacks)) is None:
            head = self._heads[lacks] = orjson.dumps(self.head(lacks))[:-1]
        return head

    def head(self, lacks: frozenset[str]) -> dict[str, Any]:
        raise NotImplementedError

    def encoded_form(self, form: str, schema: Mapping[str, Any]) -> bytes:
        raise NotImplementedError

    def body(self, request: Request, lacks: frozenset[str] = NOTHING) -> bytes:
        """The request as sent, without what the endpoint does not take."""
        raise NotImplementedError

    def reply(self, answer: Any) -> Reply:
        """The reply in an answer, whatever the endpoint left out."""
        raise NotImplementedError

    async def close(self) -> None:
        await self._transport.close()


def folded(turns: list[Turn]) -> list[Turn]:
    """Turns without a system role: its words open the first turn of the user."""
    if turns[0].role != "system":
        return turns
    return [Turn("user", f"{text_of(turns[0].content)}\n\n{text_of(turns[1].content)}"), *turns[2:]]


def returned(turn: Turn, family: str) -> Any:
    """What a reply of this family wanted back with the next turn."""
    return turn.carry.get(family) if isinstance(turn.carry, dict) else None


def malformed(answer: Any, name: str) -> ParticipantError:
    return ParticipantError(f"{name}: the answer holds no reply: {clip(answer, 200)}")


def part_of(answer: Any, name: str) -> dict[str, Any]:
    """A part of an answer where it is an object, else an empty one."""
    found = answer.get(name) if isinstance(answer, dict) else None
    return found if isinstance(found, dict) else {}


def objects_in(found: Any) -> list[dict[str, Any]]:
    """The objects of a list; all else is left out."""
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def words(content: Any) -> str:
    """The text of a message, also where it comes in parts; what is no text is left out."""
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def path_of(base: str) -> str:
    """The address itself without its query, to see where it ends."""
    return expanded(base).partition("?")[0].rstrip("/")


def unescaped(text: str) -> str:
    """A text as typed in a shell: its \\n and \\t are line breaks and tabs."""
    return text.replace("\\n", "\n").replace("\\t", "\t")
