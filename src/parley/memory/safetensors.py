"""Reads tensors from a file in the format of safetensors: the length of a header, the header as
JSON, the numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

DTYPES = {"F32": "<f4", "I64": "<i8"}


def read_tensors(file: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a file by name; their numbers stay in the file until they are used."""
    content = np.memmap(file, np.uint8, mode="r")
    start = 8 + int.from_bytes(content[:8].tobytes(), "little")
    header = orjson.loads(content[8:start].tobytes())
    found = {}
    for name, about in header.items():
        if name != "__metadata__":
            first, last = about["data_offsets"]
            numbers = content[start + first : start + last].view(DTYPES[about["dtype"]])
            found[name] = numbers.reshape(about["shape"])
    return found
