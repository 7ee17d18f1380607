"""Starts a GPU and compiles Parley's kernels while libraries are imported and weights are read."""

from __future__ import annotations

import json
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

HALVES = ("bfloat16", "float16")


def start_gpu(torch: Any, device: Any, folder: Path, dtype: str) -> Thread | None:
    """The thread that starts the GPU for a checkpoint; None if there is nothing to do.

    An error is not reported here: the check of the loaded model meets it again.
    """
    if device.type != "cuda":
        return None
    with suppress(Exception):
        facts = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        kernels = import_module("parley.providers.hf.page_kernels")
        thread = Thread(
            target=warm_up, args=(torch, device, kernels, facts, dtype), name="gpu", daemon=True
        )
        thread.start()
        return thread
    return None


def warm_up(torch: Any, device: Any, kernels: Any, facts: dict[str, Any], dtype: str) -> None:
    """Multiply two matrices and compile the kernels, for the sizes in a configuration."""
    with suppress(Exception):
        text = facts.get("text_config") or facts
        name = dtype if dtype != "auto" else facts.get("dtype") or facts.get("torch_dtype")
        if name not in HALVES:
            return
        heads = text["num_attention_heads"]
        kept = text.get("num_key_value_heads") or heads
        width = text.get("head_dim") or text["hidden_size"] // heads
        kind = getattr(torch, name)
        with torch.cuda.device(device), torch.inference_mode():
            square = torch.ones((64, 64), dtype=kind, device=device)
            square @ square
            kernels.compile_kernels(torch, device, kind, heads, kept, width)
            torch.cuda.synchronize(device)
