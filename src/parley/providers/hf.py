"""Checkpoints on this machine, run by transformers in batches: for small models, for CPUs and for
tests. Large models on a GPU are faster behind a server (`vllm/NAME`, `sglang/NAME`)."""

from __future__ import annotations

import asyncio
import gc
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from random import Random
from threading import Lock, Thread
from time import perf_counter
from typing import Any, ClassVar, Literal

from parley.errors import ParticipantError, Refused, Rejected, UsageError
from parley.match.protocol import DeviceSetup, DeviceUse, Reply, Request, Usage
from parley.match.threads import in_daemon_thread
from parley.providers._checkpoints import (
    break_special_marks,
    describe_error,
    download_checkpoint,
    find_checkpoint,
    name_checkpoint,
)
from parley.providers._endpoint import unescape_typed
from parley.rules.pool import as_message, text_of
from parley.tables import plural

NEEDS = ("torch", "transformers")
DEVICE = re.compile(r"auto|(cpu|cuda|mps|xpu)(:\d+)?")
GRACE = 10.0  # seconds that closing waits for the thread: one that is loading cannot be interrupted
LULL = 0.02  # seconds without a further call, after which those that wait start
CPU_ROWS, GPU_ROWS = 16, 64  # calls of a batch if `batch` does not say; memory may allow fewer


@dataclass
class Provider:
    """A Hugging Face checkpoint on this machine, run by transformers."""

    name: str
    _: KW_ONLY
    temperature: float = 0.0  # by default, the likeliest token each time
    top_p: float = 1.0
    max_tokens: int = 1024
    seed: int | None = None
    stop: tuple[str, ...] | None = None
    batch: int | None = None  # calls generated together at most; None: as memory allows
    device: str = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"  # auto: as it is stored
    revision: str | None = None
    download: bool = False
    thinking: bool | None = None  # for templates that ask whether to think first
    human_tag: str = "\n\nHuman:"  # for checkpoints without a template
    assistant_tag: str = "\n\nAssistant:"
    deadline: float = 600.0  # seconds a call may take once the checkpoint is loaded
    seed_per_call: ClassVar[bool] = True
    _folder: Path | None = field(default=None, init=False, repr=False)
    _checkpoint: Checkpoint | None = field(default=None, init=False, repr=False)
    _described: bool = field(default=False, init=False, repr=False)

    unbilled: ClassVar[bool] = True
    loads_folders: ClassVar[bool] = True
    thinks_by: ClassVar[tuple[str, ...]] = ("thinking",)

    def __post_init__(self) -> None:
        if missing := [module for module in NEEDS if find_spec(module) is None]:
            raise UsageError(
                f"hf/{self.name} needs {' and '.join(missing)}: pip install 'parley-eval[hf]'"
            )
        for option, least in (("temperature", 0), ("max_tokens", 1), ("batch", 1)):
            value = getattr(self, option)
            if value is not None and value < least:
                raise ValueError(f"`{option}` must be at least {least}, not {value:g}")
        if not 0 < self.top_p <= 1 or self.deadline <= 0:
            raise ValueError(
                "`top_p` must be more than 0 and at most 1, and `deadline` must be more than 0"
            )
        if not DEVICE.fullmatch(self.device):
            raise ValueError(
                f"`device` must be auto, cpu, cuda, cuda:1, mps or xpu, not {self.device!r}"
            )
        self.stop = tuple(unescape_typed(text) for text in self.stop or () if text)
        self.human_tag, self.assistant_tag = (
            unescape_typed(self.human_tag),
            unescape_typed(self.assistant_tag),
        )
        if not self.human_tag.strip() or not self.assistant_tag.strip():
            raise ValueError("`human_tag` and `assistant_tag` must not be empty")
        try:
            self._folder = find_checkpoint(self.name, self.revision, self.download)
        except (OSError, RuntimeError) as wrong:  # an unreadable folder, or an unknown ~USER
            raise ValueError(describe_error(wrong)) from None

    async def complete(self, request: Request) -> Reply:
        checkpoint = self._checkpoint = self._checkpoint or Checkpoint.shared(self)
        # many calls wait for it: one that gives up does not cancel it
        await asyncio.shield(asyncio.wrap_future(checkpoint.loaded))
        if checkpoint.fault:
            raise Refused(f"hf/{self.name}: {checkpoint.fault}")
        if not self._described:
            self._described = True
            request.call.notice(describe_setup(self.name, checkpoint.setup_for(self)))
        began = perf_counter()
        try:
            async with asyncio.timeout(self.deadline):
                reply = await asyncio.wrap_future(checkpoint.put(GenerationCall(request, self)))
        except TimeoutError:
            raise ParticipantError(
                f"hf/{self.name}: no answer within {self.deadline:g} s"
            ) from None
        reply.latency = perf_counter() - began
        return reply

    async def close(self) -> None:
        checkpoint, self._checkpoint = self._checkpoint, None
        if checkpoint is not None:
            await in_daemon_thread(checkpoint.leave)


def describe_setup(name: str, setup: DeviceSetup) -> str:
    """How a model is run, in one line for the user."""
    return (
        f"hf/{name} runs on {setup.device} in {setup.dtype}, at most "
        f"{plural(setup.batch or 1, 'reply', 'replies')} at once"
    )


class GenerationCall:
    """One request in progress, and its outcome."""

    def __init__(self, request: Request, options: Provider) -> None:
        self.turns, self.draw, self.options = request.turns, request.sampling_seed, options
        self.answer: Future[Reply] = Future()
        self.stop = options.stop or ()
        self.ids: list[int] = []
        self.tokens: list[int] = []  # the reply so far
        self.most = 0  # new tokens
        self.seed = b""
        self.random: Random | None = None  # of a call that samples
        self.seconds = 0.0  # its share of the time that the device worked

    def start_again(self) -> None:
        """Drop the reply so far."""
        self.tokens = []
        self.random = Random(self.seed) if self.seed else None

    def left(self, checkpoint: Checkpoint) -> bool:
        """Whether nobody waits for it any more."""
        return checkpoint.closing or self.answer.cancelled()

    def is_complete(self, checkpoint: Checkpoint) -> bool:
        """Whether the reply ends here: at its limit, at the end of the turn or at a stop text."""
        tokens = self.tokens
        if len(tokens) >= self.most or tokens[-1] in checkpoint.eos:
            return True
        if not self.stop:
            return False
        tail = tokens[-(2 * max(map(len, self.stop)) + 8) :]
        text = checkpoint.tokenizer.decode(tail, skip_special_tokens=True)
        return any(stop in text for stop in self.stop)

    def settle(self, outcome: Reply | Exception) -> None:
        with suppress(InvalidStateError):  # nobody waits for it any more
            if isinstance(outcome, Exception):
                self.answer.set_exception(outcome)
            else:
                self.answer.set_result(outcome)


class Checkpoint:
    """Weights in memory and the one thread that uses them; every alias of the same checkpoint
    shares both."""

    SHARED: ClassVar[dict[Any, Checkpoint]] = {}
    LOCK: ClassVar[Lock] = Lock()

    @classmethod
    def shared(cls, options: Provider) -> Checkpoint:
        """The checkpoint of these options; loaded if it is not in use yet."""
        key = (options._folder or (options.name, options.revision), options.device, options.dtype)
        with cls.LOCK:
            found = cls.SHARED.get(key) or cls.SHARED.setdefault(key, cls(key, options))
            found.users += 1
            return found

    def __init__(self, key: Any, options: Provider) -> None:
        self.key, self.options, self.users, self.closing = key, options, 0, False
        self.torch: Any = None  # loaded by the thread, like the next three
        self.model: Any = None
        self.tokenizer: Any = None
        self.device: Any = None
        self.loaded: Future[None] = Future()
        self.fault = ""  # why it could not be loaded
        self.queue: GenerateQueue | None = None
        self.setups: dict[int | None, DeviceSetup] = {}  # by the option `batch`
        self.calls = 0
        self.waiting: SimpleQueue[GenerationCall | None] = SimpleQueue()
        self.thread = Thread(target=self._work, name=f"hf/{options.name}", daemon=True)
        self.thread.start()

    def put(self, call: GenerationCall) -> Future[Reply]:
        self.waiting.put(call)
        return call.answer

    def leave(self) -> None:
        """Release one use; the last user ends the thread, which frees the weights."""
        with self.LOCK:
            self.users -= 1
            if self.users:
                return
            self.SHARED.pop(self.key, None)
        self.closing = True
        self.waiting.put(None)
        self.thread.join(GRACE)

    def _work(self) -> None:
        try:
            self._load()
        except Exception as wrong:
            self.fault = f"the model cannot be loaded: {describe_error(wrong)}"
        if not self.fault:
            self.queue = GenerateQueue(self)
        self.loaded.set_result(None)
        while not self.closing and self.queue is not None:
            self.queue.waiting += self._readied(self._gathered())
            while self.queue.waiting and not self.closing:
                self._advance(self.queue)
                self.queue.waiting += self._readied(self._arrived())
        self._refuse_the_rest()
        self.model = self.tokenizer = self.queue = None
        gc.collect()
        self.empty_cache()

    def setup_for(self, options: Provider) -> DeviceSetup:
        """How the model is run for an alias."""
        if options.batch not in self.setups:
            self.setups[options.batch] = DeviceSetup(
                device=name_device(self.torch, self.device),
                kind="cpu" if self.device.type == "cpu" else "gpu",
                engine="generate",
                dtype=str(self.model.dtype).removeprefix("torch."),
                attention=self.model.config._attn_implementation,
                batch=self.rows_for(options),
            )
        return self.setups[options.batch]

    def rows_for(self, options: Provider) -> int:
        """How many calls of an alias are generated together at most."""
        return options.batch or (CPU_ROWS if self.device.type == "cpu" else GPU_ROWS)

    def _advance(self, queue: GenerateQueue) -> None:
        """One batch; what breaks inside is the fault of every call that waits."""
        try:
            queue.advance()
        except Exception as wrong:
            fault = describe_error(wrong)
            for call in queue.stop():
                call.settle(ParticipantError(f"hf/{call.options.name}: {fault}"))

    def _refuse_the_rest(self) -> None:
        """Tell every call that is under way or waits that the model was closed."""
        calls = self.queue.stop() if self.queue is not None else []
        for call in [*calls, *self._arrived()]:
            call.settle(
                ParticipantError(
                    f"hf/{call.options.name}: the model was closed before it could reply"
                )
            )

    def _load(self) -> None:
        options, self.torch = self.options, import_module("torch")
        folder = options._folder or download_checkpoint(options.name, options.revision)
        self.device = self.torch.device(
            best_device(self.torch) if options.device == "auto" else options.device
        )
        transformers = import_module("transformers")
        self.served = name_checkpoint(options.name, folder)
        local = {"local_files_only": True, "trust_remote_code": False}
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **local)
        with without_progress_bars(transformers.utils.logging):
            self.model, found = transformers.AutoModelForCausalLM.from_pretrained(
                folder, dtype=options.dtype, output_loading_info=True, **self._straight(), **local
            )
        if missing := sorted(found["missing_keys"]):
            raise ValueError(
                f"the model's files lack {plural(len(missing), 'weight')} "
                f"({', '.join(missing)}), which would be random numbers"
            )
        self.model.to(self.device).eval()
        own = self.model.generation_config.eos_token_id
        self.eos = {*(own if isinstance(own, list) else [own]), self.tokenizer.eos_token_id} - {
            None
        }
        pad = self.tokenizer.pad_token_id
        self.pad = pad if pad is not None else min(self.eos, default=0)
        # What the checkpoint's authors recommend (penalties, temperatures) is not applied unasked.
        self.model.generation_config = transformers.GenerationConfig(
            eos_token_id=sorted(self.eos) or None, pad_token_id=self.pad
        )
        self.context: int = (
            getattr(self.model.config.get_text_config(), "max_position_embeddings", None) or 2**31
        )
        added = self.tokenizer.added_tokens_decoder.values()
        special = {str(token) for token in added if token.special} | set(
            self.tokenizer.all_special_tokens
        )
        self.special = sorted(
            (token for token in special if len(token.strip()) > 1), key=len, reverse=True
        )

    def _straight(self) -> dict[str, Any]:
        """What makes transformers load weights onto a GPU without a copy in memory."""
        can = self.device.type == "cuda" and find_spec("accelerate") is not None
        return {"device_map": {"": self.device}} if can else {}

    def _gathered(self) -> list[GenerationCall]:
        """The next calls, and those that follow at once, so that they start together."""
        calls: list[GenerationCall] = []
        call = self.waiting.get()
        while call is not None:
            calls.append(call)
            try:
                call = self.waiting.get(timeout=LULL)
            except Empty:
                break
        return calls

    def _arrived(self) -> list[GenerationCall]:
        """The calls that came meanwhile."""
        calls: list[GenerationCall] = []
        while not self.waiting.empty():
            if (call := self.waiting.get()) is not None:
                calls.append(call)
        return calls

    def _readied(self, calls: list[GenerationCall]) -> list[GenerationCall]:
        """The calls that can be generated, with their tokens."""
        ready = []
        self.calls += len(calls)
        texts = {call: text for call in calls if (text := self._format(call)) is not None}
        for call, text in self._with_tokens(texts):
            options = call.options
            call.most = min(options.max_tokens, self.context - len(call.ids))
            if call.most < 1:
                size = (
                    f"{len(call.ids)} tokens, but prompt and reply together may have at most "
                    f"{self.context}"
                )
                call.settle(Rejected(f"hf/{options.name}: the prompt has {size}"))
                continue
            if options.temperature:
                call.seed = start_of_random(options.seed, call.draw, text)
            call.start_again()
            ready.append(call)
        return ready

    def _format(self, call: GenerationCall) -> str | None:
        """The prompt of a call; None if nobody waits for it, or if it cannot be formatted."""
        if call.answer.cancelled():
            return None
        try:
            return self._prompt(call)
        except Exception as wrong:  # a template may refuse the roles, a system text most often
            fault = (
                f"hf/{call.options.name}: the model's chat template cannot format the "
                f"conversation: {describe_error(wrong)}"
            )
            system = call.turns[0].role == "system"
            call.settle(
                Refused(f"{fault} (try -M ALIAS.no_system_role=true)")
                if system
                else Rejected(fault)
            )
            return None

    def _with_tokens(self, texts: dict[GenerationCall, str]) -> list[tuple[GenerationCall, str]]:
        """The calls with their prompts, whose tokens they get. All texts are split at once, since
        a fast tokenizer then uses several threads."""
        try:
            found = self._split([*texts.values()])
        except Exception as wrong:
            if len(texts) > 1:  # the others must not suffer
                return [pair for one in texts.items() for pair in self._with_tokens(dict([one]))]
            for call in texts:
                fault = f"hf/{call.options.name}: the prompt cannot be split into tokens"
                call.settle(Rejected(f"{fault}: {describe_error(wrong)}"))
            return []
        for call, ids in zip(texts, found, strict=True):
            call.ids = ids
        return [*texts.items()]

    def _split(self, texts: list[str]) -> list[list[int]]:
        """The tokens of some prompts."""
        # a chat template has written all special tokens
        special = not self.tokenizer.chat_template
        if not texts:
            return []
        found = self.tokenizer(texts, add_special_tokens=special, verbose=False)
        return list(found["input_ids"])

    def _prompt(self, call: GenerationCall) -> str:
        """The conversation as one text."""
        options = call.options
        if self.tokenizer.chat_template:
            turns = [
                {
                    **as_message(turn),
                    "content": break_special_marks(text_of(turn.content), self.special),
                }
                for turn in call.turns
            ]
            asked = {} if options.thinking is None else {"enable_thinking": options.thinking}
            text: str = self.tokenizer.apply_chat_template(
                turns, tokenize=False, add_generation_prompt=True, **asked
            )
            return text
        tags = {
            "user": options.human_tag,
            "system": options.human_tag,
            "assistant": options.assistant_tag,
        }
        marks = [*self.special, options.human_tag, options.assistant_tag]
        said = [
            f"{tags[turn.role]} {break_special_marks(text_of(turn.content), marks)}"
            for turn in call.turns
        ]
        call.stop = (*call.stop, options.human_tag)
        return "".join(said) + options.assistant_tag

    def answer(self, call: GenerationCall) -> None:
        """Settle a call whose reply is complete."""
        tokens = call.tokens
        end = next((at for at, token in enumerate(tokens) if token in self.eos), None)
        text = self.tokenizer.decode(tokens[:end], skip_special_tokens=True)
        cut = min((at for at in map(text.find, call.stop) if at >= 0), default=None)
        call.settle(
            Reply(
                content=text[:cut]
                if self.tokenizer.chat_template
                else text[:cut].removeprefix(" "),
                finish="length" if end is None and cut is None else "stop",
                usage=Usage(len(call.ids), 0, len(tokens) if end is None else end + 1),
                model_served=self.served,
                device=DeviceUse(self.setup_for(call.options), call.seconds),
            )
        )

    def empty_cache(self) -> None:
        """Free the memory that the device's allocator caches."""
        if self.device is not None and self.device.type == "cuda":
            self.torch.cuda.empty_cache()


class GenerateQueue:
    """The waiting calls of one checkpoint, one batch after the other."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint, self.torch = checkpoint, checkpoint.torch
        self.waiting: list[GenerationCall] = []
        self.largest: float = float("inf")  # tokens of a batch; less once one did not fit

    def advance(self) -> None:
        """Generate one batch; if it does not fit into memory, remember that and try a smaller
        one."""
        calls = self._choose()
        fits, began = True, perf_counter()
        try:
            self._generate(calls)
        except self.torch.cuda.OutOfMemoryError:
            fits = False  # handled below: the traceback would keep the tensors alive
        if not fits:
            self.checkpoint.empty_cache()
            for call in calls:
                call.start_again()
            self.largest = min(self.largest, count_batch_tokens(calls)) // 2
            if len(calls) == 1:
                self.waiting.remove(calls[0])
                size = f"the prompt of {len(calls[0].ids)} tokens does not fit into memory"
                calls[0].settle(Rejected(f"hf/{calls[0].options.name}: {size}"))
            return
        if self.checkpoint.closing:  # the replies were cut off
            return
        self.waiting = [call for call in self.waiting if call not in calls]
        seconds, tokens = perf_counter() - began, [len(call.ids + call.tokens) for call in calls]
        for call, own in zip(calls, tokens, strict=True):
            call.seconds += seconds * own / sum(tokens)
            self.checkpoint.answer(call)

    def _choose(self) -> list[GenerationCall]:
        """The next batch. No finished call may exceed the context because another one continues."""
        context = self.checkpoint.context
        chosen: list[GenerationCall] = []
        for call in sorted(self.waiting, key=lambda call: len(call.ids)):
            batch = [*chosen, call]
            limit = min(self.checkpoint.rows_for(each.options) for each in batch)
            if chosen and (
                len(batch) > limit
                or len(call.ids) + max(each.most for each in batch) > context
                or count_batch_tokens(batch) > self.largest
            ):
                break
            chosen = batch
        return chosen

    def _generate(self, calls: list[GenerationCall]) -> None:
        """The new tokens of each call; shorter prompts are padded on the left and masked."""
        torch, checkpoint = self.torch, self.checkpoint
        transformers = import_module("transformers")
        width = max(len(call.ids) for call in calls)
        gaps = [width - len(call.ids) for call in calls]
        ids = [[checkpoint.pad] * gap + call.ids for call, gap in zip(calls, gaps, strict=True)]
        seen = [[0] * gap + [1] * (width - gap) for gap in gaps]
        with torch.inference_mode():
            checkpoint.model.generate(
                input_ids=torch.tensor(ids, device=checkpoint.device),
                attention_mask=torch.tensor(seen, device=checkpoint.device),
                max_new_tokens=max(call.most for call in calls),
                do_sample=False,  # drawn rows come with one token left to choose
                logits_processor=transformers.LogitsProcessorList([Draws(torch, calls)]),
                stopping_criteria=transformers.StoppingCriteriaList(
                    [Ends(checkpoint, calls, width)]
                ),
            )

    def stop(self) -> list[GenerationCall]:
        """Drop all calls, and return them."""
        calls, self.waiting = self.waiting, []
        return calls


def count_batch_tokens(calls: Sequence[GenerationCall]) -> int:
    """The size of a batch: its rows, each as long as the longest may become."""
    return len(calls) * max(len(call.ids) + call.most for call in calls)


def draw_tokens(torch: Any, scores: Any, calls: Sequence[Any]) -> Any:
    """A token for each row, by the call's temperature and top_p."""
    device = scores.device
    temperature = torch.tensor([[call.options.temperature] for call in calls], device=device)
    top_p = torch.tensor([[call.options.top_p] for call in calls], device=device)
    chance = (scores.float() / temperature).softmax(-1)
    if any(call.options.top_p < 1 for call in calls):
        likeliest, order = chance.sort(descending=True)
        likeliest[likeliest.cumsum(-1) - likeliest >= top_p] = 0
        chance = torch.zeros_like(chance).scatter(-1, order, likeliest)
    upto = chance.cumsum(-1)
    point = torch.tensor([[1 - call.random.random()] for call in calls], device=device)  # never 0
    return (upto < point * upto[:, -1:]).sum(-1).clamp(max=scores.shape[-1] - 1)


class Draws:
    """Leaves each sampling row only the token that was drawn for it, with the call's own random
    numbers, so that other calls do not matter."""

    def __init__(self, torch: Any, calls: Sequence[GenerationCall]) -> None:
        self.torch = torch
        self.rows = [row for row, call in enumerate(calls) if call.random]
        self.calls = [calls[row] for row in self.rows]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if not self.rows:
            return scores
        token = draw_tokens(self.torch, scores[self.rows], self.calls)
        left = self.torch.full_like(scores[self.rows], float("-inf"))
        left[range(len(self.rows)), token] = 0
        scores[self.rows] = left
        return scores


class Ends:
    """Marks rows that are done: at their own limit, at a stop text, or because nobody waits for
    them any more."""

    def __init__(self, checkpoint: Checkpoint, calls: Sequence[GenerationCall], width: int) -> None:
        self.checkpoint, self.calls, self.width = checkpoint, calls, width
        self.done = [False] * len(calls)

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        newest = input_ids[:, -1].tolist()
        for row, call in enumerate(self.calls):
            if not self.done[row]:
                call.tokens.append(newest[row])
                self.done[row] = call.left(self.checkpoint) or call.is_complete(self.checkpoint)
        return self.checkpoint.torch.tensor(self.done, device=input_ids.device)


@contextmanager
def without_progress_bars(logging: Any) -> Iterator[None]:
    """Hide the progress bars of other libraries."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def best_device(torch: Any) -> str:
    return (
        "cuda"
        if torch.cuda.is_available()
        else "mps"
        if torch.backends.mps.is_available()
        else "cpu"
    )


def name_device(torch: Any, device: Any) -> str:
    """The name of a device, as its maker gives it."""
    if device.type in ("cuda", "xpu"):
        return str(getattr(torch, device.type).get_device_name(device))
    return "Apple GPU" if device.type == "mps" else device.type.upper()


def start_of_random(seed: int | None, draw: bytes, text: str) -> bytes:
    """The start of a call's random numbers: depends on the seed, its place in the run and the
    prompt, not on earlier calls."""
    if seed is None:
        return os.urandom(16)
    return blake2b(draw + f"{seed}\n{text}".encode("utf-8", "replace"), digest_size=16).digest()
