"""One model behind an address that takes JSON: what all such providers share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from hashlib import blake2b
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import orjson

from parley.errors import Filtered, ParticipantError, Rejected
from parley.match.protocol import Reply, Request
from parley.providers import _capabilities as capabilities
from parley.providers._capabilities import FORMS, MEASURED, NOTHING, Capabilities
from parley.providers._schemas import portable, strict
from parley.providers._secrets import address, expanded, key_from, place_of, setting
from parley.providers._traits import traits_of
from parley.providers._transport import Term, Transport
from parley.rules.pool import Turn, text_of
from parley.tables import shorten

MOST_FORMS = 500  # encoded forms that are kept
# How endpoints say that a request is refused for what is said in it, and not for how it is made.
FILTERED = re.compile(
    r"""(?:code|type)["']\s*:\s*["'](?:content_filter|content_policy_violation)["']|ResponsibleAIPolicyViolation|["']flagged_input["']"""
    r"|content management policy|content filtering "
    r"policy|invalid_prompt(?=[^}]*(?:flagged|polic|safety))|(?:flagged|polic|safety)(?=[^}]*invalid_prompt)"
)
AHEAD = len('{"role":"","content":')


class Form(NamedTuple):
    """What was made of a schema, by the kind of form; the schema is held, so that its identity
    stays its own."""

    schema: Mapping[str, Any]
    mark: str
    encoded: dict[str, bytes]


@dataclass
class Endpoint(ABC):
    """One model behind an address; the fields are the options a user may set."""

    name: str
    _: KW_ONLY
    base_url: str | None = None
    api_key_env: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    # let the endpoint hold replies to the form that was asked for; None: where it can
    structured: bool | None = None
    deadline: float = 600.0  # seconds a call may take, retries included
    timeout: float | None = None  # seconds a single try may go without a word
    idempotency_header: str | None = None  # carries the same value with every try of a request
    _transport: Transport = field(init=False, repr=False)
    _known: Capabilities = field(init=False, repr=False)
    _place: str = field(default="", init=False, repr=False)
    _told: set[str] = field(default_factory=set, init=False, repr=False)
    _heads: dict[frozenset[str], bytes] = field(default_factory=dict, init=False, repr=False)
    _forms: dict[int, Form] = field(default_factory=dict, init=False, repr=False)
    _alike: dict[bytes, Form] = field(default_factory=dict, init=False, repr=False)

    reports_requests: ClassVar[bool] = True  # of every request, before it leaves
    # this and what else a provider says of itself is explained in traits.py
    home: ClassVar[str | None] = None
    home_env: ClassVar[str | None] = None
    home_like: ClassVar[str] = "http://HOST:PORT/v1"
    key_env: ClassVar[str | None] = None
    key_needed: ClassVar[bool] = False
    key_header: ClassVar[str] = "Authorization"
    seller: ClassVar[str | None] = None
    small: ClassVar[str | None] = None
    caches: ClassVar[bool | None] = None
    thinks_by: ClassVar[tuple[str, ...] | None] = ()
    headers: ClassVar[Mapping[str, str]] = {}
    path: ClassVar[str] = ""
    references: ClassVar[bool] = True  # it takes base_url as written, so that errors can name it so
    # options that a model may not take
    optional: ClassVar[tuple[str, ...]] = ("temperature", "top_p", "stop")
    # what can hold a reply to a form, the strictest first
    forms: ClassVar[tuple[str, ...]] = ("json_schema", "json_object")
    # what strict schemas may limit; None: they need not be strict
    schema_limits: ClassVar[frozenset[str] | None] = None
    folds: ClassVar[bool] = True  # where there is no system role, its words open the first turn

    def __post_init__(self) -> None:
        base = self.base_url or (self.home_env and setting(self.home_env)) or self.home
        if not base:
            there = f" or {self.home_env} in the environment" if self.home_env else ""
            raise ValueError(
                f"say where it is served: -M ALIAS.base_url={self.home_like}{there} "
                f"(model {self.name})"
            )
        variable = self.api_key_env or traits_of(type(self)).key_variable
        key = key_from(variable, needed=self.key_needed or bool(self.api_key_env))
        self.stop = tuple(unescaped(text) for text in self.stop or () if text) or None
        base, path = self.route(base)
        url, self._place = address(base, f"base_url of {self.name}", path), place_of(base, path)
        self._transport = Transport(
            url,
            key,
            self.deadline,
            self._place,
            key_header=self.key_header,
            headers=dict(self.headers),
            timeout=self.timeout,
            idempotency_header=self.idempotency_header,
            scope=self.name,
            filtered=self.filtered,
        )
        self._known = capabilities.of(url, self.name)

    def route(self, base: str) -> tuple[str, str]:
        """The address as written, and the path behind it."""
        return base, self.path

    async def complete(self, request: Request) -> Reply:
        began, lacks, term = perf_counter(), self._known.lacks, Term()
        while True:  # every turn of it leaves out one feature more, and there are few
            try:
                reply = self.reply(
                    await self._transport.post(self.body(request, lacks), request.call, term)
                )
                break
            except Filtered:
                reply = Reply("", finish="filter")
                break
            except Rejected as rejected:
                lacks = self.without_what_is_named(rejected, request, lacks)
        if lacks:
            if not lacks <= self._known.lacks:
                self._known.learn(lacks)
            reply.left_out = self.left_out(request, lacks)
        reply.latency = perf_counter() - began
        return reply

    def filtered(self, status: int, said: str) -> bool:
        """Whether an error refuses a request for what is said in it: no fault, but a reply without
        words."""
        return status in (0, 400, 403) and FILTERED.search(said) is not None

    def left_out(self, request: Request, lacks: frozenset[str]) -> tuple[str, ...]:
        """What was set for this request, can change what is measured, and was not taken; the person
        is told once."""
        asked = {*self.chosen(NOTHING), request.turns[0].role}
        missed = tuple(feature for feature in MEASURED if feature in lacks and feature in asked)
        for feature in missed:
            if feature not in self._told:
                self._told.add(feature)
                how = (
                    "a system role: its words open the first turn"
                    if feature == "system"
                    else f"{feature}: it is asked without"
                )
                request.call.notice(
                    f"{self.name} does not take {how}, and that is on record with its replies"
                )
        return missed

    def without_what_is_named(
        self, rejected: Rejected, request: Request, lacks: frozenset[str]
    ) -> frozenset[str]:
        """What the next request leaves out; a rejection that names no feature of this one
        stands."""
        if not self._known.lacks <= lacks:  # another call has found out in the meantime
            return lacks | self._known.lacks
        said = rejected.answer
        feature = capabilities.named(said, self.offered(request, lacks))
        if feature is None:
            raise rejected
        if feature in FORMS and request.schema is not None and capabilities.of_one_schema(said):
            return lacks | {f"{feature} {self.kept(request.schema).mark}"}
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
        if request.schema is None or self.structured is False or not self.forms:
            return ""
        if self.structured or not lacks:
            return self.forms[0]
        mark = self.kept(request.schema).mark
        return next(
            (form for form in self.forms if form not in lacks and f"{form} {mark}" not in lacks), ""
        )

    def formed(self, request: Request, lacks: frozenset[str]) -> bytes:
        """The part of a request that asks for a form; made once for each."""
        if request.schema is None or not (form := self.form(request, lacks)):
            return b""
        kept = self.kept(request.schema)
        if (encoded := kept.encoded.get(form)) is None:
            encoded = kept.encoded[form] = self.encoded_form(form, request.schema)
        return encoded

    def kept(self, schema: Mapping[str, Any]) -> Form:
        """What was made of a schema before; the same object is known at a glance, an equal one by
        its words."""
        if (found := self._forms.get(id(schema))) is not None:
            return found
        if len(self._forms) >= MOST_FORMS:
            self._forms.clear()
            self._alike.clear()
        words = orjson.dumps(schema)
        alike = self._alike.setdefault(
            words, Form(schema, blake2b(words, digest_size=8).hexdigest(), {})
        )
        return self._forms.setdefault(id(schema), alike._replace(schema=schema))

    def dialect(self, schema: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """A schema as this endpoint takes it, and whether replies can be held to every word of
        it."""
        if self.schema_limits is None:
            return portable(schema), True
        found = strict(schema, self.schema_limits)
        return (dict(schema), False) if found is None else (found, True)

    def headed(self, lacks: frozenset[str]) -> bytes:
        """The part of a request that is the same in all of them; made once."""
        if (head := self._heads.get(lacks)) is None:
            head = self._heads[lacks] = orjson.dumps(self.head(lacks))[:-1]
        return head

    @abstractmethod
    def head(self, lacks: frozenset[str]) -> dict[str, Any]:
        """What is the same in all requests."""

    @abstractmethod
    def encoded_form(self, form: str, schema: Mapping[str, Any]) -> bytes:
        """How a form is asked for."""

    @abstractmethod
    def body(self, request: Request, lacks: frozenset[str] = NOTHING) -> bytes:
        """The request as sent, without what the endpoint does not take."""

    @abstractmethod
    def reply(self, answer: Any) -> Reply:
        """The reply in an answer, whatever the endpoint left out."""

    async def close(self) -> None:
        await self._transport.close()


def spoken(turn: Turn) -> bytes:
    """The words of a turn as JSON, taken out of how it was encoded when it was said."""
    if isinstance(turn.content, str):
        return turn.encoded[AHEAD + len(turn.role) : -1]
    return orjson.dumps(text_of(turn.content))


def returned(turn: Turn, family: str) -> Any:
    """What a reply of this family wanted back with the next turn."""
    return turn.provider_state.get(family) if isinstance(turn.provider_state, dict) else None


def malformed(answer: Any, name: str) -> ParticipantError:
    return ParticipantError(f"{name}: the answer holds no reply: {shorten(answer, 200)}")


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
