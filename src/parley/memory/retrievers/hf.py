"""`hf/NAME`: any encoder from Hugging Face, run by transformers. The vector of a text is the mean
over its tokens. The paper uses Contriever and BERT."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parley.downloads import copy_and_hash
from parley.errors import UsageError
from parley.memory.dense import DenseRetriever
from parley.providers._checkpoints import describe_error, is_checkpoint
from parley.providers.hf import (
    NEEDS,
    best_device,
    without_progress_bars,
)
from parley.tables import plural

MOST_TOKENS = 512  # of a text; what comes after them is left out
READ = ("*.json", "*.txt", "*.model", "*.safetensors", "*.bin")  # files that a result depends on


class TransformersEncoder:
    """An encoder in a folder; it is loaded when it is prepared, or with the first text.

    Texts are embedded one by one, so that a vector does not depend on the other texts.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self._loaded: tuple[Any, Any] | None = None

    @property
    def width(self) -> int:
        return int(self._load()[1].config.hidden_size)

    def prepare(self) -> None:
        self.embed(["a"])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        tokenizer, model = self._load()
        most = getattr(model.config, "max_position_embeddings", None) or MOST_TOKENS
        most = min(MOST_TOKENS, most, tokenizer.model_max_length)
        found = np.empty((len(texts), self.width), np.float32)
        try:
            with import_module("torch").inference_mode():
                for row, text in enumerate(texts):
                    given = tokenizer(text, truncation=True, max_length=most, return_tensors="pt")
                    states = model(**given.to(model.device)).last_hidden_state[0]
                    found[row] = states.mean(dim=0).float().cpu().numpy()
        except Exception as wrong:  # a library may raise anything on a checkpoint
            raise self._fault(wrong) from wrong
        return np.nan_to_num(found)  # of a text without any token

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is None:
            local = {"local_files_only": True, "trust_remote_code": False}
            try:
                torch, transformers = import_module("torch"), import_module("transformers")
                tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder, **local)
                with without_progress_bars(transformers.utils.logging):
                    model, about = transformers.AutoModel.from_pretrained(
                        self.folder, dtype=torch.float32, output_loading_info=True, **local
                    )
            except Exception as wrong:
                raise self._fault(wrong) from wrong
            # layers after the token states are not used
            if missing := sorted(key for key in about["missing_keys"] if "pooler" not in key):
                raise UsageError(
                    f"retriever hf/{self.name} cannot be used, because its files lack "
                    f"{plural(len(missing), 'weight')} ({', '.join(missing[:5])}), which would "
                    "be random numbers"
                )
            self._loaded = tokenizer, model.to(best_device(torch)).eval()
        return self._loaded

    def _fault(self, wrong: Exception) -> UsageError:
        return UsageError(
            f"retriever hf/{self.name} cannot be used as an encoder: {describe_error(wrong)}"
        )


def find_encoder(name: str) -> Path:
    """The folder of a checkpoint: as named, or in the local cache of Hugging Face."""
    path = Path(name).expanduser()
    if name.startswith((".", "/", "~")) or is_checkpoint(path):
        if not is_checkpoint(path):
            raise UsageError(
                f"retriever hf/{name}: the folder {path} is not a checkpoint, because it lacks "
                "config.json or weights"
            )
        return path.resolve()
    try:
        hub = import_module("huggingface_hub")
        kept = Path(hub.snapshot_download(name, local_files_only=True))
    except (OSError, ValueError):  # not in the cache, or not the name of a repository
        kept = None
    if kept is None or not is_checkpoint(kept):
        raise UsageError(
            f"retriever hf/{name} is not in the local cache: run `hf download {name}`, or name "
            f"a folder with hf/./{name} (Parley never downloads a checkpoint itself)"
        )
    return kept


def hash_checkpoint(folder: Path) -> str:
    """A digest of all files that the result of an encoder depends on."""
    digest = sha256()
    for file in sorted({file for pattern in READ for file in folder.glob(pattern)}):
        real = file.resolve()
        if re.fullmatch("[0-9a-f]{64}", real.name):  # the hub's cache names files by their hash
            content = real.name
        else:
            with real.open("rb") as stream:
                content = copy_and_hash(stream)
        digest.update(f"{file.name} {content}\n".encode())
    return digest.hexdigest()


def make(rest: str) -> DenseRetriever:
    if not rest:
        raise UsageError(
            "retriever hf needs the name of an encoder, like hf/facebook/contriever or hf/./FOLDER"
        )
    if missing := [module for module in NEEDS if find_spec(module) is None]:
        raise UsageError(
            f"retriever hf/{rest} needs {' and '.join(missing)}: pip install 'parley-eval[hf]'"
        )
    folder = find_encoder(rest)
    version = f"1 {hash_checkpoint(folder)[:12]}"
    return DenseRetriever(f"hf/{rest}", version, TransformersEncoder(rest, folder))
