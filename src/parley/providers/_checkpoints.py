"""Checkpoints of the Hugging Face hub: folders on this machine, the local cache and downloads, for
all providers that load weights here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson

from parley.providers._secrets import redact
from parley.tables import shorten

TOKENIZERS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "tekken.json",
)
FETCHED = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja"]  # no programs, no pickles


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
    try:
        hub = import_module("huggingface_hub")
    except ImportError:
        raise ValueError(
            "the local cache of models is read by huggingface_hub, which is not installed: "
            f"pip install huggingface_hub. To use a folder on this machine, write ./{name}"
        ) from None
    offline = import_module("huggingface_hub.constants").HF_HUB_OFFLINE
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


def name_checkpoint(name: str, folder: Path) -> str:
    """The name of a checkpoint in results: of a repository with its commit, or of its folder."""
    return f"{name}@{folder.name[:12]}" if folder.parent.name == "snapshots" else folder.name


def download_checkpoint(name: str, revision: str | None) -> Path:
    """The folder of a checkpoint after its download."""
    return Path(
        import_module("huggingface_hub").snapshot_download(
            name, revision=revision, allow_patterns=FETCHED
        )
    )


def find_special_marks(folder: Path) -> list[str]:
    """The special tokens that the files of a checkpoint name, the longest first."""
    found = set[str]()
    for name in TOKENIZERS:
        with suppress(OSError, ValueError):
            found |= set(special_tokens_in(orjson.loads((folder / name).read_bytes())))
    return sorted((mark for mark in found if len(mark.strip()) > 1), key=len, reverse=True)


def special_tokens_in(given: Any) -> Iterator[str]:
    """The special tokens in any of the forms in which tokenizers are stored."""
    if isinstance(given, dict):
        for key, value in given.items():
            if key in ("added_tokens", "added_tokens_decoder"):
                every = value.values() if isinstance(value, dict) else value
                yield from texts_of_tokens([each for each in every if each.get("special")])
            elif key.endswith(("_token", "special_tokens")):  # eos_token, extra_special_tokens
                yield from texts_of_tokens(value)


def texts_of_tokens(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from texts_of_tokens(each)
    elif isinstance(value, dict):
        text = value.get("content", value.get("token_str"))
        yield from texts_of_tokens(list(value.values()) if text is None else text)


def break_special_marks(text: str, marks: Iterable[str]) -> str:
    """A text in which no mark can be mistaken for the end of a turn or a new speaker: a space goes
    before the last character of each mark."""
    for mark in marks:
        if mark in text:
            core = mark.strip()
            text = text.replace(mark, mark.replace(core, f"{core[:-1]} {core[-1]}"))
    return text


def describe_error(wrong: BaseException) -> str:
    """An error on one line."""
    return shorten(redact(" ".join(f"{type(wrong).__name__}: {wrong}".split())), 500)
