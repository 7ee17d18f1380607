"""Weights in memory, and the one thread that generates with them."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from random import Random
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, ClassVar

from parley.errors import ParticipantError, Refused, Rejected
from parley.match.protocol import DeviceSetup, DeviceUse, Reply, Request, Usage
from parley.providers.hf.fallbacks import describe_error
from parley.providers.hf.generate import GenerateQueue
from parley.providers.hf.gpu_start import start_gpu
from parley.providers.hf.slots import LULL, Slots
from parley.rules.pool import as_message, text_of
from parley.tables import plural

if TYPE_CHECKING:
    from parley.providers.hf import Provider

FETCHED = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja"]  # no programs, no pickles
GRACE = 10.0  # seconds that closing waits for the thread: one that is loading cannot be interrupted


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
        self.marks: list[int] = []  # of the full pages of the prompt
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
        self.engine: Slots | GenerateQueue | None = None
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
            try:
                self.engine = self._choose_generator()
            except Exception as wrong:
                self.fault = f"Parley cannot run the model: {describe_error(wrong)}"
        self.loaded.set_result(None)
        while not self.closing and self.engine is not None:
            self.engine.add(self._readied(self._gathered()))
            while self.engine.busy and not self.closing:
                self._advance(self.engine)
                self.engine.add(self._readied(self._arrived()))
        self._refuse_the_rest()
        if self.engine is not None:
            self.engine.close()
        self.model = self.tokenizer = self.engine = None
        gc.collect()
        self.empty_cache()

    def _choose_generator(self) -> Slots | GenerateQueue:
        """The fastest engine that works for this model."""
        slots = Slots(self)
        return slots if slots.prepare() else GenerateQueue(self, slots.fallback)

    def setup_for(self, options: Provider) -> DeviceSetup:
        """How the model is run for an alias."""
        if options.batch not in self.setups and self.engine is not None:
            self.setups[options.batch] = DeviceSetup(
                device=name_device(self.torch, self.device),
                kind="cpu" if self.device.type == "cpu" else "gpu",
                dtype=str(self.model.dtype).removeprefix("torch."),
                batch=options.batch or self.engine.usual_rows,
                **self.engine.facts(),
            )
        return self.setups[options.batch]

    def _advance(self, engine: Slots | GenerateQueue) -> None:
        """One step; what breaks inside is the fault of every call under way."""
        try:
            engine.advance()
        except Exception as wrong:
            fault = describe_error(wrong)
            for call in engine.stop():
                call.settle(ParticipantError(f"hf/{call.options.name}: {fault}"))

    def _refuse_the_rest(self) -> None:
        """Tell every call that is under way or waits that the model was closed."""
        calls = self.engine.stop() if self.engine is not None else []
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
        if self.device.index is not None and self.device.type == "cuda":
            self.torch.cuda.set_device(self.device)  # kernels run on the thread's own device
        starting = start_gpu(self.torch, self.device, folder, options.dtype)
        transformers = import_module("transformers")
        self.served = (
            f"{options.name}@{folder.name[:12]}"
            if folder.parent.name == "snapshots"
            else folder.name
        )
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
        if starting is not None:
            starting.join()

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


def download_checkpoint(name: str, revision: str | None) -> Path:
    """The folder of a checkpoint after its download."""
    return Path(
        import_module("huggingface_hub").snapshot_download(
            name, revision=revision, allow_patterns=FETCHED
        )
    )


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


def break_special_marks(text: str, marks: Iterable[str]) -> str:
    """A text in which no mark can be mistaken for the end of a turn or a new speaker: a space goes
    before the last character of each mark."""
    for mark in marks:
        if mark in text:
            core = mark.strip()
            text = text.replace(mark, mark.replace(core, f"{core[:-1]} {core[-1]}"))
    return text
