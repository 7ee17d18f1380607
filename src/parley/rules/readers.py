"""Readers: each describes one form of reply, parses it, and can write it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from random import Random
from typing import Any, Protocol, TypeVar
from unicodedata import normalize

import orjson

from parley.errors import OutOfBounds, TaskError, Unreadable
from parley.rules.parsing import find_fenced_blocks, find_object, finite_number, is_single_word
from parley.rules.prompts import Prompt
from parley.tables import shorten

T_co = TypeVar("T_co", covariant=True)
LONGEST = 200_000  # characters of one reply that are read and kept


class Reader(Protocol[T_co]):
    """One form of reply: the hint in the prompt, the schema for endpoints that take one, the
    parser."""

    @property
    def hint(self) -> str: ...

    @property
    def schema(self) -> Mapping[str, Any] | None: ...

    def read(self, text: str) -> T_co: ...

    def write(self, value: Any, reason: str = "") -> str:
        """Write a reply that reads as this value; bots use it to answer."""

    def sample(self, rng: Random) -> T_co:
        """Draw any value that this form allows."""


class ReplyText(str):
    """The text of a reply, or the part that was read. `cut` is true if the token limit ended the
    reply early; `said` is the whole reply if only a part of it was read."""

    cut: bool = False
    said: str = ""


@dataclass(frozen=True)
class Text:
    """Free text; only an empty reply is unreadable."""

    hint: str = ""
    schema: None = None

    def read(self, text: str) -> ReplyText:
        words = text.strip()
        if not words:
            raise Unreadable("the reply is empty")
        return ReplyText(words)

    def write(self, value: Any, reason: str = "") -> str:
        return str(value)

    def sample(self, rng: Random) -> ReplyText:
        return ReplyText(
            " ".join(rng.choice(("yes", "no", "perhaps", "why", "it", "depends")) for _ in range(5))
        )


@dataclass(frozen=True)
class Word:
    """One word and nothing else, of at most `longest` letters. Punctuation and spaces around it
    are ignored."""

    hint: str = "Answer with one word and nothing else."
    longest: int | None = None
    # replaces the common prompt `again` for a second attempt
    again: Prompt | None = None
    letters: str = "aeilnorst"  # `sample` makes words of these
    schema: None = None

    def read(self, text: str) -> ReplyText:
        words = normalize("NFKC", text)
        letters = [at for at, mark in enumerate(words) if mark.isalnum()]
        if not letters:
            raise Unreadable("the reply holds no word")
        word = words[letters[0] : letters[-1] + 1]
        if not word.isalnum() or (self.longest is not None and len(word) > self.longest):
            raise Unreadable("the reply is not one word alone")
        return ReplyText(word)

    def write(self, value: Any, reason: str = "") -> str:
        return str(value)

    def sample(self, rng: Random) -> ReplyText:
        return ReplyText("".join(rng.choice(self.letters) for _ in range(self.longest or 5)))


@dataclass(frozen=True)
class Amount:
    """A number between two limits, under a name in a JSON object with a reason. `whole`: only
    whole numbers."""

    name: str
    least: float
    most: float
    whole: bool = False

    def __post_init__(self) -> None:
        if not self.least <= self.most or (
            self.whole and math.ceil(self.least) > math.floor(self.most)
        ):
            raise TaskError(
                f"Amount {self.name!r}: there is no {'whole ' * self.whole}number from "
                f"{self.least} to {self.most}"
            )

    @cached_property
    def hint(self) -> str:
        kind = "whole number" if self.whole else "number"
        return json_hint(
            {"reason": "why", self.name: f"a {kind} from {self.least:g} to {self.most:g}"}
        )

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        number = {
            "type": "integer" if self.whole else "number",
            "minimum": self.least,
            "maximum": self.most,
        }
        return object_schema({"reason": {"type": "string"}, self.name: number})

    def read(self, text: str) -> float:
        value = (
            finite_number(text)
            if is_single_word(text)
            else finite_number(find_object(text, {self.name})[self.name])
        )
        if value is None:
            raise Unreadable(
                "no number and no JSON object found"
                if is_single_word(text)
                else f"{self.name} is not a number"
            )
        if not self.least <= value <= self.most:
            raise OutOfBounds(
                f"{self.name} must be from {self.least:g} to {self.most:g}, not {shorten(value)}"
            )
        if self.whole and value != int(value):
            raise OutOfBounds(f"{self.name} must be a whole number, not {shorten(value)}")
        return int(value) if value == int(value) else value

    def write(self, value: Any, reason: str = "") -> str:
        return orjson.dumps({"reason": reason, self.name: value}).decode()

    def sample(self, rng: Random) -> float:
        low, high = math.ceil(self.least), math.floor(self.most)
        whole = self.whole or (low <= high and rng.random() < 0.5)
        if whole:
            return rng.randint(low, high)
        value = rng.uniform(self.least, self.most)
        short = round(value, 2)
        return short if self.least <= short <= self.most else value


@dataclass(frozen=True)
class Choice:
    """One of several words, under a name in a JSON object with a reason."""

    name: str
    options: tuple[str, ...]
    hint: str = ""  # replaces the generated description of the form, in another language say
    # replaces the common prompt `again` for a second attempt
    again: Prompt | None = None

    def __post_init__(self) -> None:
        if (
            len({option.casefold() for option in self.options}) != len(self.options)
            or not self.options
        ):
            raise TaskError(
                f"Choice {self.name!r} needs at least one option and no duplicates, "
                f"not {self.options!r}"
            )
        if not self.hint:
            object.__setattr__(
                self, "hint", json_hint({"reason": "why", self.name: " or ".join(self.options)})
            )

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        return object_schema(
            {"reason": {"type": "string"}, self.name: {"enum": list(self.options)}}
        )

    def read(self, text: str) -> str:
        said = text if is_single_word(text) else find_object(text, {self.name})[self.name]
        if not isinstance(said, str):
            raise Unreadable(f"{self.name} must be one of {', '.join(self.options)}")
        word = said.strip(" \t\r\n.,;:!?'\"*_`()[]").casefold()
        for option in self.options:
            if option.casefold() == word:
                return option
        wrong = Unreadable if said is text else OutOfBounds
        found = shorten(said) or "nothing"
        raise wrong(f"{self.name} must be one of {', '.join(self.options)}, not {found}")

    def write(self, value: Any, reason: str = "") -> str:
        return orjson.dumps({"reason": reason, self.name: value}).decode()

    def sample(self, rng: Random) -> str:
        return rng.choice(self.options)


@dataclass(frozen=True, eq=False)
class Fields:
    """A JSON object in which every field has a JSON schema; all fields are required."""

    fields: Mapping[str, Mapping[str, Any]]

    def __post_init__(self) -> None:
        if not self.fields:
            raise TaskError("Fields needs at least one field")

    @cached_property
    def hint(self) -> str:
        return json_hint({name: describe_schema(schema) for name, schema in self.fields.items()})

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        return object_schema(self.fields)

    @cached_property
    def fault_of(self) -> Callable[[Any], str | None]:
        """A check of an object against the schema, compiled at its first use."""
        from fastjsonschema import JsonSchemaValueException

        check = compile_schema(orjson.dumps({**self.schema, "additionalProperties": True}))

        def fault(found: Any) -> str | None:
            try:
                check(found)
            except JsonSchemaValueException as wrong:
                return str(wrong.message).removeprefix("data.").removeprefix("data ")
            return None

        return fault

    def read(self, text: str) -> dict[str, Any]:
        found = find_object(text, set(self.fields))
        if fault := self.fault_of(found):
            raise OutOfBounds(shorten(fault))
        return {name: found[name] for name in self.fields}

    def write(self, value: Any, reason: str = "") -> str:
        return orjson.dumps(value).decode()

    def sample(self, rng: Random) -> dict[str, Any]:
        return {name: sample_schema(schema, rng) for name, schema in self.fields.items()}


@dataclass(frozen=True)
class Code:
    """A program: the longest fenced block of the reply, or the whole reply if there is none."""

    language: str = "python"
    schema: None = None

    @cached_property
    def hint(self) -> str:
        return f"Put the whole program into one fenced block:\n```{self.language}\n…\n```"

    def read(self, text: str) -> ReplyText:
        blocks = find_fenced_blocks(text.replace("\r\n", "\n"))
        named = [body for tag, body in blocks if tag in (self.language, self.language[:2])]
        code = max(named or [body for _, body in blocks] or [text], key=len).strip("\n")
        if not code.strip():
            raise Unreadable("the reply holds no program")
        return ReplyText(code)

    def write(self, value: Any, reason: str = "") -> str:
        return f"{reason}\n```{self.language}\n{value}\n```"

    def sample(self, rng: Random) -> ReplyText:
        return ReplyText(f"answer = {rng.randint(0, 9)}")


def json_hint(fields: Mapping[str, str]) -> str:
    """The sentence that asks for a JSON object with these fields."""
    inside = ", ".join(f'"{name}": <{what}>' for name, what in fields.items())
    return f"Answer with one JSON object and nothing else: {{{inside}}}"


@lru_cache
def compile_schema(schema: bytes, use_default: bool = True) -> Callable[[Any], Any]:
    """A check of values against a JSON schema; it raises fastjsonschema's exceptions. To compile
    takes milliseconds, and tasks make the same schema for each match."""
    from fastjsonschema import compile

    check: Callable[[Any], Any] = compile(orjson.loads(schema), use_default=use_default)
    return check


def object_schema(properties: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The schema of an object that has exactly these properties."""
    return {
        "type": "object",
        "properties": {name: dict(schema) for name, schema in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }


def describe_schema(schema: Mapping[str, Any]) -> str:
    """Describe a field's schema in words, for the prompt."""
    if "description" in schema:
        return str(schema["description"])
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    limits = [str(schema[limit]) for limit in ("minimum", "maximum") if limit in schema]
    return str(schema.get("type", "value")) + (
        f" from {' to '.join(limits)}" if len(limits) == 2 else ""
    )


def sample_schema(schema: Mapping[str, Any], rng: Random) -> Any:
    """Make any value that a field's schema allows."""
    if "enum" in schema:
        return rng.choice(list(schema["enum"]))
    match schema.get("type", "string"):
        case "integer":
            return rng.randint(schema.get("minimum", 0), schema.get("maximum", 100))
        case "number":
            return rng.uniform(schema.get("minimum", 0), schema.get("maximum", 100))
        case "boolean":
            return rng.random() < 0.5
        case "array":
            length = rng.randint(schema.get("minItems", 0), schema.get("maxItems", 3))
            return [sample_schema(schema.get("items", {}), rng) for _ in range(length)]
        case "object":
            return {
                name: sample_schema(field, rng)
                for name, field in schema.get("properties", {}).items()
            }
        case _:
            return rng.choice(("yes", "no", "perhaps"))
