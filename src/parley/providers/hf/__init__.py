"""Checkpoints on this machine, run by transformers."""

from __future__ import annotations

import asyncio
import re
from dataclasses import KW_ONLY, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import ClassVar, Literal

from parley.errors import ParticipantError, Refused, UsageError
from parley.match.protocol import DeviceSetup, Reply, Request
from parley.match.threads import in_daemon_thread
from parley.providers._endpoint import unescape_typed
from parley.providers.hf.checkpoint import Checkpoint, GenerationCall
from parley.providers.hf.fallbacks import describe_error
from parley.tables import plural

NEEDS = ("torch", "transformers")
DEVICE = re.compile(r"auto|(cpu|cuda|mps|xpu)(:\d+)?")


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
    pool = f", {setup.pool_tokens:,} tokens in the pool" if setup.pool_tokens else ""
    slower = f". A faster engine is not used: {setup.fallback}" if setup.fallback else ""
    return (
        f"hf/{name} runs on {setup.device} in {setup.dtype} ({setup.engine}, at most "
        f"{plural(setup.batch or 1, 'reply', 'replies')} at once{pool}){slower}"
    )


def find_checkpoint(name: str, revision: str | None, download: bool) -> Path | None:
    """The folder of a checkpoint: as named, or in the local cache; None if it must be downloaded
    and the user allows that."""
    path = Path(name).expanduser()
    if name.startswith((".", "/", "~")) or is_checkpoint(path):
        if not path.is_dir():
            raise ValueError(f"the folder {path} does not exist")
        if not is_checkpoint(path):
            raise ValueError(
                f"the folder {path} is not a checkpoint, because it lacks config.json or "
                "weights (*.safetensors)"
            )
        return path.resolve()
    hub, offline = (
        import_module("huggingface_hub"),
        import_module("huggingface_hub.constants").HF_HUB_OFFLINE,
    )
    try:
        kept = Path(hub.snapshot_download(name, revision=revision, local_files_only=True))
        if is_checkpoint(kept):
            return kept
    except OSError:  # not in the cache
        pass
    except ValueError as wrong:  # not the name of a repository
        raise ValueError(f"{describe_error(wrong)} (to name a folder, write ./{name})") from None
    if download and not offline:
        return None
    how = (
        "the environment variable HF_HUB_OFFLINE forbids downloads"
        if offline
        else "Parley downloads checkpoints only with -M ALIAS.download=true"
    )
    raise ValueError(
        f"the model is not in the local cache, and {how}. To use a folder on this machine, "
        f"write ./{name}"
    )


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder looks like a checkpoint."""
    weights = (next(folder.glob(pattern), None) for pattern in ("*.safetensors", "*.bin"))
    return (folder / "config.json").is_file() and any(weights)
