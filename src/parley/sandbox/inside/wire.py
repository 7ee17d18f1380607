"""Frames between the two sides, and values as data. Everything that crosses is copied, because
foreign objects cannot be trusted."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from typing import Any

LARGEST = 4 << 20  # bytes of one frame
SAFE = 2**53
LONGEST = 10_000  # characters of a number or date that is sent as text
WHOLE_OR_RATIO = re.compile(r"-?[0-9]+(?:/[0-9]+)?")
TAGGED: dict[str, Callable[[Any], Any]] = {"t": tuple, "s": set, "z": frozenset}


class Ended(Exception):
    """The other side has closed the connection."""


class Channel:
    """Frames over a pair of descriptors: four bytes of length, then JSON."""

    def __init__(self, read: int, write: int) -> None:
        self.read, self.write = read, write

    def send(self, message: Any) -> None:
        body = json.dumps(message).encode()
        if len(body) > LARGEST:
            raise ValueError(
                f"{len(body)} bytes are more than the {LARGEST} that may cross at once"
            )
        rest = memoryview(len(body).to_bytes(4, "big") + body)
        while rest:
            try:
                rest = rest[os.write(self.write, rest) :]
            except (BrokenPipeError, ConnectionResetError):
                raise Ended from None

    def receive(self) -> Any:
        size = int.from_bytes(self._exactly(4), "big")
        if size > LARGEST:
            raise ValueError(f"a frame of {size} bytes, where {LARGEST} are the most")
        return json.loads(self._exactly(size))

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                part = os.read(self.read, min(1 << 16, size - len(parts)))
            except ConnectionResetError:
                part = b""
            if not part:
                raise Ended
            parts += part
        return bytes(parts)


def pack(value: Any, other: Callable[[Any], Any]) -> Any:
    """Encode a value as JSON by its contents, without calling its methods. `other` encodes
    values that are not plain data."""
    kind = type(value)
    if value is None or kind is bool or kind is str or kind is float:
        return value
    if isinstance(value, int):
        number = int.__index__(value)
        return number if -SAFE < number < SAFE else {"i": hex(number)}
    if isinstance(value, float):
        return float.__add__(value, 0.0)
    if isinstance(value, str):
        return "".join(str.__iter__(value))
    if isinstance(value, list):
        return [pack(each, other) for each in list.__iter__(value)]
    if isinstance(value, dict):
        return {"d": [[pack(key, other), pack(each, other)] for key, each in dict.items(value)]}
    if isinstance(value, tuple):
        return {"t": [pack(each, other) for each in tuple.__iter__(value)]}
    if isinstance(value, set):
        return {"s": [pack(each, other) for each in set.__iter__(value)]}
    if isinstance(value, frozenset):
        return {"z": [pack(each, other) for each in frozenset.__iter__(value)]}
    return pack_library_type(value, other)


def pack_library_type(value: Any, other: Callable[[Any], Any]) -> Any:
    """Encode types of the standard library that functions sometimes return."""
    kind = type(value)
    if kind is bytes or kind is bytearray:
        return {"b": bytes(value).hex(), "of": kind.__name__}
    if kind is complex:
        return {"c": [value.real, value.imag]}
    if kind is range:
        return {"n": [pack(each, other) for each in (value.start, value.stop, value.step)]}
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name in ("decimal.Decimal", "fractions.Fraction"):
        return {"x": name, "v": str(value)[:LONGEST]}
    if name in ("datetime.date", "datetime.datetime", "datetime.time"):
        return {"x": name, "v": value.isoformat()}
    if name == "datetime.timedelta":
        return {"x": name, "v": [value.days, value.seconds, value.microseconds]}
    if name == "collections.deque":
        return {"x": name, "v": [pack(each, other) for each in value]}
    return other(value)


def unpack(found: Any, other: Callable[[Any], Any]) -> Any:
    """Decode a result of `packed`; anything else is refused."""
    kind = type(found)
    if kind is list:
        return [unpack(each, other) for each in found]
    if kind is not dict:
        return found
    if "x" in found:
        return unpack_library_type(found["x"], found["v"], other)
    tag = next(iter(found), "")  # an empty one has no tag
    held = found.get(tag)
    if tag in TAGGED:
        return TAGGED[tag]([unpack(each, other) for each in held])
    if tag == "d":
        return {unpack(key, other): unpack(each, other) for key, each in held}
    if tag == "i":
        return int(held, 16)
    if tag == "b":
        return (bytearray if found.get("of") == "bytearray" else bytes).fromhex(held)
    if tag == "c":
        return complex(float(held[0]), float(held[1]))
    if tag == "n":
        return range(*(unpack(each, other) for each in held))
    if tag == "r":
        return other(found)
    raise ValueError(f"not a packed value: {str(found)[:80]}")


def unpack_library_type(name: str, held: Any, other: Callable[[Any], Any]) -> Any:
    import datetime
    from collections import deque
    from decimal import Decimal
    from fractions import Fraction

    if name == "collections.deque":
        return deque(unpack(each, other) for each in held)
    if name == "datetime.timedelta":
        return datetime.timedelta(*held)
    if name == "fractions.Fraction" and not WHOLE_OR_RATIO.fullmatch(str(held)):
        # it could be written with an exponent, and take all memory as a fraction
        raise ValueError("not a fraction")
    if len(str(held)) > LONGEST:
        raise ValueError(f"a number or date may have at most {LONGEST} characters")
    plain: dict[str, Callable[[str], Any]] = {
        "decimal.Decimal": Decimal,
        "fractions.Fraction": Fraction,
        "datetime.date": datetime.date.fromisoformat,
        "datetime.datetime": datetime.datetime.fromisoformat,
        "datetime.time": datetime.time.fromisoformat,
    }
    return plain[name](str(held))


def refuse_object(value: Any) -> Any:
    raise ValueError(f"{type(value).__name__} is not data")
