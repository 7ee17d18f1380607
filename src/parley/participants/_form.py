"""The form that a person fills in: one field for each part of the reply that the rule asks for.

It is made from the reader, so the browser and the terminal ask for the same things. What the person
enters becomes a reply in the required format, which then goes through the same reader as the reply
of a model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import orjson

from parley.rules.parsing import is_deeper_than
from parley.rules.pool import View
from parley.rules.quotations import TextPart, split_quotations
from parley.rules.readers import Amount, Choice, Code, Reader, Text, Word
from parley.tasks._common.answers import ExactAnswer, LetterChoice

FieldKind = Literal["number", "choice", "line", "text", "code"]
Entries = Mapping[str, str]  # what a person entered, by field name
MOST_LEVELS = 20  # of JSON that is read; deeper JSON stays text
EXACT = 2**53  # whole numbers up to here are exact in JSON
MAY_BE_EMPTY = re.compile(r"\bempty\b")  # in the description of a field
JSON_HINT = re.compile(r"\s*Answer with one JSON object and nothing else: \{[^\n]*\}\s*\Z")


@dataclass(frozen=True)
class AnswerField:
    """One input: its name in the form, its label, and what may be entered."""

    name: str
    label: str
    kind: FieldKind
    help: str = ""
    required: bool = True  # the form cannot be sent without it
    # certainly not needed; a text that is neither required nor optional depends on the question
    optional: bool = False
    least: float | None = None
    most: float | None = None
    whole: bool = False
    options: tuple[tuple[str, str], ...] = ()  # of a choice: value and label
    longest: int | None = None  # letters
    group: str = ""  # fields of one object belong together

    @property
    def bounds(self) -> str:
        """The allowed numbers in words; empty for other kinds."""
        if self.kind != "number":
            return ""
        kind = "a whole number" if self.whole else "a number"
        if self.least is not None and self.most is not None:
            return f"{kind} from {self.least:g} to {self.most:g}"
        if self.least is not None:
            return f"{kind}, at least {self.least:g}"
        return kind if self.most is None else f"{kind}, at most {self.most:g}"


@dataclass(frozen=True)
class AnswerForm:
    """The inputs, and the function that makes a reply of what was entered."""

    fields: tuple[AnswerField, ...]
    write: Callable[[Entries], str]
    # the fields show the format, so the sentences about it in the question are not needed
    replaces_hint: bool = True

    def is_blank(self, entries: Entries) -> bool:
        """Whether nothing was entered."""
        return not any(entries.get(field.name, "").strip() for field in self.fields)

    @property
    def depends_on_question(self) -> bool:
        """Whether the reader cannot tell if some field may stay empty."""
        return any(not field.required and not field.optional for field in self.fields)


REASON = AnswerField("reason", "Reason", "text", required=False, optional=True)


def make_form(reader: Reader[Any], free: bool = False) -> AnswerForm:
    """The form for the reply that a reader expects; a single text if the reply is `free`."""
    if free or isinstance(reader, Text):
        return make_text_form("text")
    if isinstance(reader, Word):
        field = AnswerField("answer", "Your word", "line", longest=reader.longest)
        return AnswerForm((field,), lambda given: given.get("answer", "").strip())
    if isinstance(reader, Code):
        field = AnswerField("answer", "Your program", "code", f"Language: {reader.language}")
        return AnswerForm((field,), lambda given: reader.write(given.get("answer", "")).strip())
    if isinstance(reader, Amount):
        return make_amount_form(reader)
    if isinstance(reader, Choice):
        return make_choice_form(reader)
    if isinstance(reader, LetterChoice):
        pairs = zip(reader.letters, reader.choices, strict=True)
        field = AnswerField(
            "answer",
            "Your answer",
            "choice",
            options=tuple((a, f"{a}. {text}") for a, text in pairs),
        )
        return AnswerForm((field,), lambda given: reader.write(given.get("answer", "")))
    if isinstance(reader, ExactAnswer):
        fields = (AnswerField("answer", "Your answer", "line"), REASON)
        return AnswerForm(
            fields,
            lambda given: reader.write(given.get("answer", "").strip(), given.get("reason", "")),
        )
    schema = reader.schema
    if schema is not None and schema.get("type") == "object":
        return make_object_form(schema)
    return make_text_form("code")  # a format of the task's own


def make_text_form(kind: FieldKind) -> AnswerForm:
    """One text, in the format that the question describes."""
    field = AnswerField("answer", "Your answer", kind)
    return AnswerForm((field,), lambda given: given.get("answer", "").strip(), replaces_hint=False)


def make_amount_form(reader: Amount) -> AnswerForm:
    """A number and a reason."""
    number = AnswerField(
        reader.name,
        title_of(reader.name),
        "number",
        least=reader.least,
        most=reader.most,
        whole=reader.whole,
    )
    return AnswerForm(
        (number, REASON),
        lambda given: reader.write(
            parse_entered_number(given.get(reader.name, "")), reason_in(given)
        ),
    )


def make_choice_form(reader: Choice) -> AnswerForm:
    """One of several words, and a reason."""
    name, options = reader.name, tuple((each, each) for each in reader.options)
    choice = AnswerField(name, title_of(name), "choice", options=options)
    return AnswerForm(
        (choice, REASON), lambda given: reader.write(given.get(name, ""), reason_in(given))
    )


def make_object_form(schema: Mapping[str, Any]) -> AnswerForm:
    """One field for each value of an object; objects inside it are groups of fields."""
    leaves = list(find_leaves(schema, ()))
    fields = tuple(make_schema_field(path, leaf) for path, leaf in leaves)
    if len(fields) == 1:  # an empty form is not accepted
        fields = (replace(fields[0], required=True, optional=False),)

    def write(given: Entries) -> str:
        found: dict[str, Any] = {}
        for path, leaf in leaves:
            inner = found
            for name in path[:-1]:
                inner = inner.setdefault(name, {})
            inner[path[-1]] = parse_entry(given.get(".".join(path), ""), leaf)
        return orjson.dumps(found).decode()

    return AnswerForm(fields, write)


def find_leaves(
    schema: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """The values in an object's schema, each with its path."""
    for name, inner in schema.get("properties", {}).items():
        if inner.get("type") == "object" and inner.get("properties"):
            yield from find_leaves(inner, (*path, name))
        else:
            yield (*path, name), inner


def make_schema_field(path: tuple[str, ...], schema: Mapping[str, Any]) -> AnswerField:
    """The input for one value of an object."""
    name, label, group = ".".join(path), title_of(path[-1]), " · ".join(map(title_of, path[:-1]))
    help = str(schema.get("description", "")).strip()
    help = help[:1].upper() + help[1:]
    if "enum" in schema or schema.get("type") == "boolean":
        values = schema.get("enum", (True, False))
        options = tuple((str(each), show_value(each).replace("_", " ")) for each in values)
        return AnswerField(name, label, "choice", help, options=options, group=group)
    match schema.get("type", "string"):
        case "integer" | "number" as kind:
            return AnswerField(
                name,
                label,
                "number",
                help,
                least=schema.get("minimum"),
                most=schema.get("maximum"),
                whole=kind == "integer",
                group=group,
            )
        case "array" if is_plain_list(schema):
            help = f"{help} One per line.".strip()
            least = schema.get("minItems", 0) > 0
            spare = not least and MAY_BE_EMPTY.search(help) is not None
            return AnswerField(name, label, "text", help, least, spare, group=group)
        case "string":
            least = schema.get("minLength", 0) > 0
            spare = not least and MAY_BE_EMPTY.search(help) is not None
            most = schema.get("maxLength")
            return AnswerField(name, label, "text", help, least, spare, longest=most, group=group)
        case _:
            return AnswerField(name, label, "code", f"{help} Enter JSON.".strip(), group=group)


def is_plain_list(schema: Mapping[str, Any]) -> bool:
    """Whether a list holds texts or numbers, so that it can be entered line by line."""
    return schema.get("items", {}).get("type", "string") in ("string", "number", "integer")


def parse_entry(text: str, schema: Mapping[str, Any]) -> Any:
    """What was entered as the value that the schema wants. What does not fit stays text, which the
    reader then refuses in its own words."""
    choices = schema.get("enum", (True, False) if schema.get("type") == "boolean" else ())
    for each in choices:
        if str(each) == text:
            return each
    match schema.get("type", "string"):
        case "integer" | "number":
            return parse_entered_number(text)
        case "array" if is_plain_list(schema):
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            return [parse_entry(line, schema.get("items", {})) for line in lines]
        case "string":
            return text.strip()
        case _:
            try:
                found = orjson.loads(text)
            except orjson.JSONDecodeError:
                return text
            return text if is_deeper_than(found, MOST_LEVELS) else found


def parse_entered_number(text: str) -> float | str:
    """A number that JSON can hold; other text stays as it is."""
    text = text.strip()
    try:
        value = float(text)
    except ValueError:
        return text
    if not math.isfinite(value) or "_" in text:
        return text
    return int(value) if value == int(value) and abs(value) < EXACT else value


def reason_in(given: Entries) -> str:
    return given.get(REASON.name, "").strip()


def title_of(name: str) -> str:
    """A field's name as a label."""
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def show_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


# What people read.


def hide_format(text: str, hint: str) -> str:
    """A question without the sentences on its format, which the form shows instead."""
    text = text.rstrip()
    if hint and text.endswith(hint.strip()):
        text = text[: -len(hint.strip())].rstrip()
    return JSON_HINT.sub("", text)


def describe_reply(text: str) -> str:
    """A reply in words: the values of a JSON object line by line. Other text stays as it is, and
    so does an object with too many levels."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    if not isinstance(found, dict) or is_deeper_than(found, MOST_LEVELS):
        return text
    return "\n".join(f"{name}: {value}" for name, value in flatten_object(found, "")) or text


def flatten_object(found: Mapping[str, Any], before: str) -> Iterator[tuple[str, str]]:
    """The values of an object with their names in words; empty values are left out."""
    for name, value in found.items():
        label = f"{before}{title_of(name)}"
        if isinstance(value, dict):
            yield from flatten_object(value, f"{label} · ")
        elif isinstance(value, list):
            yield label, ", ".join(map(show_value, value))
        elif value not in ("", None):
            yield label, show_value(value)


@dataclass(frozen=True)
class ShownTurn:
    """One turn of a conversation as a person reads it."""

    own: bool  # said by the person
    text: str

    @property
    def parts(self) -> list[TextPart]:
        """The text in parts: statements of others stand apart from the words of the referee."""
        return [TextPart("", self.text)] if self.own else split_quotations(self.text)


def show_turns(view: View, form: AnswerForm) -> list[ShownTurn]:
    """The conversation of a seat, oldest first, with the demonstrations before their question."""
    hint = view.expect.hint if form.replaces_hint else ""
    shown: list[ShownTurn] = []
    for number, message in enumerate(view):
        if view.examples is not None and view.examples[0] == number:
            shown += [
                ShownTurn(False, show_example(at, each.question, each.answer))
                for at, each in enumerate(view.examples[1], 1)
            ]
        if message["role"] == "assistant":
            shown.append(ShownTurn(True, describe_reply(message["content"])))
        else:
            shown.append(ShownTurn(False, hide_format(message["content"], hint)))
    return shown


def show_example(number: int, question: str, answer: str) -> str:
    """One demonstration, as text."""
    return f"Example {number}\n{question}\n\nAnswer: {answer}"
