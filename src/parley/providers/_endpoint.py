"""The base class of providers that send JSON to an endpoint."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from hashlib import blake2b
from time import perf_counter
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import orjson

from parley.errors import Filtered, ParticipantError, Rejected
from parley.match.protocol import Call, Reply, Request
from parley.providers import _capabilities as capabilities
from parley.providers._batches import BATCHES, BatchClient
from parley.providers._capabilities import FORMS, MEASURED, NOTHING, Capabilities
from parley.providers._env_file import find_setting
from parley.providers._schemas import make_portable, make_strict
from parley.providers._secrets import (
    complete_address,
    expand_references,
    printable_address,
    read_key,
)
from parley.providers._traits import traits_of
from parley.providers._transport import Deadline, EndpointAnswer, Transport
from parley.rules.pool import Turn, text_of
from parley.tables import shorten

MOST_FORMS = 500  # encoded schemas that are kept
# How endpoints say that they refuse the content of a request, not its form.
FILTERED = re.compile(
    r"""(?:code|type)["']\s*:\s*["'](?:content_filter|content_policy_violation)["']|ResponsibleAIPolicyViolation|["']flagged_input["']"""
    r"|content management policy|content filtering "
    r"policy|invalid_prompt(?=[^}]*(?:flagged|polic|safety))|(?:flagged|polic|safety)(?=[^}]*invalid_prompt)"
)
DERIVED: Literal["derived"] = "derived"
# the user's own seed, a seed for each call derived from the run's seed, or none
Seed: TypeAlias = int | Literal["derived"] | None

# sends a request and returns its answer
Post: TypeAlias = Callable[[bytes, Call, Deadline], Awaitable[EndpointAnswer]]


class EncodedSchema(NamedTuple):
    """A schema encoded for each kind of format. It keeps the schema alive, so that its id stays
    unique."""

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
    # let the endpoint constrain replies to the requested format; None: if it can
    structured: bool | None = None
    deadline: float = 600.0  # seconds a call may take, retries included
    timeout: float | None = None  # seconds a single try may go without data
    idempotency_header: str | None = None  # has the same value for every try of a request
    batch_api: bool = False  # send requests in batches: slower, and at a lower price
    _transport: Transport = field(init=False, repr=False)
    _known: Capabilities = field(init=False, repr=False)
    _address: str = field(default="", init=False, repr=False)
    _post: Post = field(init=False, repr=False)
    _base: str = field(default="", init=False, repr=False)
    _in_batches: bool = field(default=False, init=False, repr=False)
    _notified: set[str] = field(default_factory=set, init=False, repr=False)
    _heads: dict[frozenset[str], bytes] = field(default_factory=dict, init=False, repr=False)
    _schemas_by_identity: dict[int, EncodedSchema] = field(
        default_factory=dict, init=False, repr=False
    )
    _schemas_by_content: dict[bytes, EncodedSchema] = field(
        default_factory=dict, init=False, repr=False
    )

    reports_requests: ClassVar[bool] = True  # it calls `before_request` for each request
    # see `_traits.py` for these and the other facts about a provider
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
    references: ClassVar[bool] = True  # it gets base_url as written, so that errors can show it
    # options that a model may not accept
    optional: ClassVar[tuple[str, ...]] = ("temperature", "top_p", "stop")
    # the formats that can constrain a reply, the strictest first
    forms: ClassVar[tuple[str, ...]] = ("json_schema", "json_object")
    # the limits that strict schemas may have; None: they need not be strict
    schema_limits: ClassVar[frozenset[str] | None] = None
    batch_client: ClassVar[type[BatchClient] | None] = None  # None: it has no batch interface
    # without a system role, the system text goes to the beginning of the first turn
    folds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        base = self.base_url or (self.home_env and find_setting(self.home_env)) or self.home
        if not base:
            there = f" or {self.home_env} in the environment" if self.home_env else ""
            raise ValueError(
                f"{self.name} needs the address of your endpoint: set -M "
                f"ALIAS.base_url={self.home_like}{there}"
            )
        variable = self.api_key_env or traits_of(type(self)).key_variable
        key = read_key(variable, needed=self.key_needed or bool(self.api_key_env))
        self.stop = tuple(unescape_typed(text) for text in self.stop or () if text) or None
        self.connect(base, key)
        if self.batch_api and self.batch_client is None:
            raise ValueError(
                "this provider has no batch API that Parley can use: remove `batch_api=true`, so "
                "that the model is called without batches"
            )

    def connect(self, base: str, key: str | None, direct: bool = False) -> None:
        """Send requests to this address, `direct` past any proxy."""
        self._base = base
        base, path = self.route(base)
        url, self._address = (
            complete_address(base, f"base_url of {self.name}", path),
            printable_address(base, path),
        )
        self._transport = Transport(
            url,
            key,
            self.deadline,
            self._address,
            key_header=self.key_header,
            headers=dict(self.headers),
            timeout=self.timeout,
            idempotency_header=self.idempotency_header,
            scope=self.name,
            filtered=self.is_filtered,
            direct=direct,
        )
        self._post = self._transport.post
        self._known = capabilities.find_capabilities(url, self.name)

    def route(self, base: str) -> tuple[str, str]:
        """The address as written, and the path to append to it."""
        return base, self.path

    @property
    def url(self) -> str:
        """Where requests go."""
        return self._transport.url

    def make_batch_client(self) -> BatchClient:
        """The client of the endpoint's batch interface."""
        assert self.batch_client is not None
        base, path = self.route(self._base)
        root = self.batch_root(path)

        def address(more: str) -> str:
            return complete_address(base, f"base_url of {self.name}", root + more)

        place = printable_address(base, root + BATCHES)
        return self.batch_client(self._transport, address, path, self.reply, place)

    def batch_root(self, path: str) -> str:
        """The path that those of the batch interface begin with."""
        return ""

    def send_in_batches(self, post: Post) -> None:
        """Send requests with this function from now on; how long a call takes then says nothing
        about the model."""
        self._post, self._in_batches = post, True

    async def complete(self, request: Request) -> Reply:
        began, unsupported, term = perf_counter(), self._known.unsupported, Deadline()
        while True:  # each pass leaves out one more feature, and there are few
            try:
                answer = await self._post(self.body(request, unsupported), request.call, term)
                reply = self.reply(answer.content)
                reply.request_id = answer.request_id
                break
            except Filtered:
                reply = Reply("", finish="filter")
                break
            except Rejected as rejected:
                unsupported = self.leave_out_rejected(rejected, request, unsupported)
        if unsupported:
            reply.left_out = self.left_out(request, unsupported)
            if not unsupported <= self._known.unsupported:
                self._known.add_unsupported(unsupported, reply.left_out)
        reply.latency = None if self._in_batches else perf_counter() - began
        return reply

    def is_filtered(self, status: int, said: str) -> bool:
        """Whether an error refuses the content of a request: this is not a fault, but an empty
        reply."""
        return status in (0, 400, 403) and FILTERED.search(said) is not None

    def left_out(self, request: Request, unsupported: frozenset[str]) -> tuple[str, ...]:
        """The features that were set for this request, can change results, and were left out; the
        user gets one notice for each."""
        asked = {*self.options_to_send(NOTHING), request.turns[0].role}
        missed = tuple(
            feature for feature in MEASURED if feature in unsupported and feature in asked
        )
        for feature in missed:
            if feature not in self._notified:
                self._notified.add(feature)
                how = (
                    "a system role, so Parley puts the system text at the start of the first "
                    "message"
                    if feature == "system"
                    else f"{feature}, so Parley leaves it out"
                )
                request.call.notice(
                    f"{self.name} does not accept {how}; the run records this with each reply"
                )
        return missed

    def leave_out_rejected(
        self, rejected: Rejected, request: Request, unsupported: frozenset[str]
    ) -> frozenset[str]:
        """What the next request leaves out; raises a rejection that names no feature of this
        one."""
        if not self._known.unsupported <= unsupported:  # another call found out in the meantime
            return unsupported | self._known.unsupported
        said = rejected.answer
        feature = capabilities.find_rejected_feature(
            said, self.optional_features(request, unsupported)
        )
        if feature is None:
            raise rejected
        if (
            feature in FORMS
            and request.schema is not None
            and capabilities.is_about_one_schema(said)
        ):
            return unsupported | {f"{feature} {self.cached_schema(request.schema).mark}"}
        return unsupported | {feature}

    def optional_features(self, request: Request, unsupported: frozenset[str]) -> Iterator[str]:
        """The features of a request that it can do without."""
        if self.structured is None and (form := self.reply_format(request, unsupported)):
            yield form
        if self.folds and request.turns[0].role == "system" and "system" not in unsupported:
            yield "system"
        yield from self.options_to_send(unsupported)
        if self.derived_seed(request, unsupported) is not None:
            yield "seed"

    def derived_seed(self, request: Request, unsupported: frozenset[str]) -> int | None:
        """The seed of this call if the user set none: the same each time the run is played."""
        if getattr(self, "seed", None) != DERIVED or "seed" in unsupported:
            return None
        # 31 bits, which every endpoint accepts
        return int.from_bytes(request.sampling_seed[:4]) >> 1 if request.sampling_seed else None

    def options_to_send(self, unsupported: frozenset[str]) -> dict[str, Any]:
        """The options that were set and are supported."""
        values = {name: getattr(self, name) for name in self.optional if name not in unsupported}
        return {
            name: value
            for name, value in values.items()
            if value not in (None, "") and (name, value) != ("seed", DERIVED)
        }

    def reply_format(self, request: Request, unsupported: frozenset[str]) -> str:
        """The format that constrains this reply; empty if none does."""
        if request.schema is None or self.structured is False or not self.forms:
            return ""
        if self.structured or not unsupported:
            return self.forms[0]
        mark = self.cached_schema(request.schema).mark
        return next(
            (
                form
                for form in self.forms
                if form not in unsupported and f"{form} {mark}" not in unsupported
            ),
            "",
        )

    def encoded_schema(self, request: Request, unsupported: frozenset[str]) -> bytes:
        """The part of a request that asks for a format; made once for each schema."""
        if request.schema is None or not (form := self.reply_format(request, unsupported)):
            return b""
        kept = self.cached_schema(request.schema)
        if (encoded := kept.encoded.get(form)) is None:
            encoded = kept.encoded[form] = self.encode_schema(form, request.schema)
        return encoded

    def cached_schema(self, schema: Mapping[str, Any]) -> EncodedSchema:
        """The cached encodings of a schema; looked up by identity first, then by content."""
        if (found := self._schemas_by_identity.get(id(schema))) is not None:
            return found
        if len(self._schemas_by_identity) >= MOST_FORMS:
            self._schemas_by_identity.clear()
            self._schemas_by_content.clear()
        words = orjson.dumps(schema)
        alike = self._schemas_by_content.setdefault(
            words, EncodedSchema(schema, blake2b(words, digest_size=8).hexdigest(), {})
        )
        return self._schemas_by_identity.setdefault(id(schema), alike._replace(schema=schema))

    def dialect(self, schema: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """A schema as this endpoint accepts it, and whether it can be strict."""
        if self.schema_limits is None:
            return make_portable(schema), True
        found = make_strict(schema, self.schema_limits)
        return (dict(schema), False) if found is None else (found, True)

    def encoded_head(self, unsupported: frozenset[str]) -> bytes:
        """The part of a request that is the same in all of them; made once."""
        if (head := self._heads.get(unsupported)) is None:
            head = self._heads[unsupported] = orjson.dumps(self.head(unsupported))[:-1]
        return head

    @abstractmethod
    def head(self, unsupported: frozenset[str]) -> dict[str, Any]:
        """What is the same in all requests."""

    @abstractmethod
    def encode_schema(self, form: str, schema: Mapping[str, Any]) -> bytes:
        """The part of a request that asks for a format."""

    @abstractmethod
    def body(self, request: Request, unsupported: frozenset[str] = NOTHING) -> bytes:
        """The request as sent, without what the endpoint does not support."""

    @abstractmethod
    def reply(self, answer: Any) -> Reply:
        """The reply in an answer, whatever the endpoint left out."""

    async def close(self) -> None:
        await self._transport.close()


def encode_text(turn: Turn) -> bytes:
    """The text of a turn as JSON."""
    return orjson.dumps(text_of(turn.content))


def find_provider_state(turn: Turn, family: str) -> Any:
    """The state that a reply of this family needs back with the next turn."""
    return turn.provider_state.get(family) if isinstance(turn.provider_state, dict) else None


def no_reply_error(answer: Any, name: str) -> ParticipantError:
    return ParticipantError(
        f"{name}: the endpoint's response contains no reply: {shorten(answer, 200)}"
    )


def object_in(answer: Any, name: str) -> dict[str, Any]:
    """A part of an answer if it is an object, else an empty one."""
    found = answer.get(name) if isinstance(answer, dict) else None
    return found if isinstance(found, dict) else {}


def join_text_parts(content: Any) -> str:
    """The text of a message, also if it comes in parts; everything else is left out."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def path_without_query(base: str) -> str:
    """The address without its query, to check how it ends."""
    return expand_references(base).partition("?")[0].rstrip("/")


def unescape_typed(text: str) -> str:
    """A text as typed in a shell: its \\n and \\t are line breaks and tabs."""
    return text.replace("\\n", "\n").replace("\\t", "\t")
