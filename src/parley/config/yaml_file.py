"""YAML files with errors that name the file, the line and the key. `yaml` is imported only when a
file is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from parley.errors import UsageError, unknown_name
from parley.providers._secrets import REFERENCE, expand_references
from parley.rules.readers import compile_schema

if TYPE_CHECKING:
    from yaml import Node, SafeLoader

# maximum levels and values; a larger file refers to itself or is not a configuration
DEEPEST, MOST = 20, 100_000
MERGE = "tag:yaml.org,2002:merge"
HALVES = re.compile("[\ud800-\udfff]")
PLAIN = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
KINDS = {dict: "a mapping", list: "a list", type(None): "nothing"}
Place = tuple[str | int, ...]


class YamlFile:
    """A YAML mapping as plain data, with the line of each value."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[Place, int] = {}
        self._read_so_far = 0
        self.data: dict[str, Any] = self._read()

    def _read(self) -> dict[str, Any]:
        try:
            text = self.path.expanduser().read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as wrong:
            raise UsageError(
                f"{self.path} cannot be read: {getattr(wrong, 'strerror', None) or wrong}"
            ) from None
        import yaml

        loader = None
        try:
            loader = yaml.SafeLoader(text)
            root = loader.get_single_node()
            if root is None:
                raise UsageError(f"{self.path} is empty: write the configuration into this file")
            found = self._value(root, (), loader)
        except yaml.MarkedYAMLError as wrong:
            line = wrong.problem_mark.line + 1 if wrong.problem_mark else 1
            raise UsageError(
                f"{self.path}, line {line}: not readable as YAML: {wrong.problem}"
            ) from None
        # a scalar that contradicts its tag, such as `!!int` without digits, raises the last two
        except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError) as wrong:
            line = text.count("\n", 0, getattr(wrong, "position", 0)) + 1
            what = (str(wrong).splitlines() or [type(wrong).__name__])[0]
            raise UsageError(f"{self.path}, line {line}: not readable as YAML: {what}") from None
        finally:
            if loader is not None:
                loader.dispose()
        if not isinstance(found, dict):
            raise self.error((), f"expected keys with values, found {short_value(found)}")
        return found

    def _value(self, node: Node, place: Place, loader: SafeLoader) -> Any:
        import yaml

        self._lines.setdefault(place, node.start_mark.line + 1)
        self._read_so_far += 1  # merged values count as well
        if len(place) > DEEPEST:
            raise self.error(
                place[:1],
                f"the file is nested more than {DEEPEST} levels deep, or a YAML alias (*name) "
                f"refers to itself",
            )
        if self._read_so_far > MOST:
            raise self.error(
                place[:1],
                f"the file is too large: it has more than {MOST:,} values after YAML aliases "
                f"(*name) are expanded; shorten it or use fewer aliases",
            )
        if not isinstance(node, yaml.ScalarNode) and node.tag not in PLAIN:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            raise self.error(
                place,
                f"expected plain keys, lists and values, found the YAML tag `{tag}`: remove it",
            )
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place, loader)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(each, (*place, n), loader) for n, each in enumerate(node.value)]
        if node.tag.endswith(":timestamp"):
            return node.value  # a date stays a string
        found = loader.construct_object(node)
        if isinstance(found, str) and HALVES.search(found):
            raise self.error(
                place,
                f"invalid Unicode (half of a surrogate pair) in {short_value(found)}: remove "
                "it, because it cannot be stored",
            )
        return found

    def _mapping(self, node: Any, place: Place, loader: SafeLoader) -> dict[str, Any]:
        """A mapping with its keys as strings; its own keys override those that `<<` merges in."""
        found: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag == MERGE:
                continue
            if not isinstance(key.value, str):
                raise UsageError(
                    f"{self.path}, line {key.start_mark.line + 1}: a key must be a "
                    f"string, not a {key.id}"
                )
            here, line = (*place, key.value), key.start_mark.line + 1
            if key.value in found:
                raise UsageError(
                    f"{self.path}, line {line}: the key `{format_place(here)}` is given twice "
                    f"(first on line {self._lines[here]}): remove one of them"
                )
            self._lines.setdefault(here, line)
            found[key.value] = self._value(value, here, loader)
        for key, value in node.value:
            if key.tag == MERGE:
                for each in value.value if value.id == "sequence" else [value]:
                    merged = self._value(each, place, loader)
                    if not isinstance(merged, dict):
                        raise self.error(
                            place,
                            f"the YAML merge key `<<` needs a mapping, found {short_value(merged)}",
                        )
                    found = {**merged, **found}
        return found

    def line(self, *place: str | int) -> int:
        """The line of a value, or of the nearest section around it."""
        while place not in self._lines and place:
            place = place[:-1]
        return self._lines.get(place, 1)

    def has(self, place: Place) -> bool:
        """Whether the file has a value at a place."""
        return place in self._lines

    def error(self, place: Place, what: str) -> UsageError:
        """An error with file, line and key."""
        return UsageError(f"{self.place_text(place)}: {what}")

    def place_text(self, place: Place) -> str:
        """File, line and key, for errors."""
        where = f"{self.path}, line {self.line(*place)}"
        return f"{where}: {format_place(place)}" if place else where

    @contextmanager
    def errors_at(self, *place: str | int) -> Iterator[None]:
        """Add file, line and key to every UsageError inside."""
        try:
            yield
        except UsageError as wrong:
            raise self.error(place, str(wrong)) from None

    def check(self, schema: Mapping[str, Any]) -> None:
        """Check the file against a JSON schema; the schema's titles say what is expected."""
        from fastjsonschema import JsonSchemaValueException

        # first, because a misspelt key is also a missing one
        self._refuse_strange((), self.data, schema)
        try:
            compile_schema(orjson.dumps(schema), use_default=False)(self.data)
        except JsonSchemaValueException as wrong:
            place = self._place(wrong.name or "")
            self._refuse_strange(place, wrong.value, wrong.definition)
            if wrong.rule == "required":
                missing = next(key for key in wrong.rule_definition if key not in wrong.value)
                wanted = wrong.definition["properties"][missing]["title"]
                raise self.error(
                    place, f"the key `{missing}` is missing: add `{missing}:` with {wanted}"
                ) from None
            if wrong.rule == "propertyNames":
                raise self.error(
                    place,
                    f"expected {wrong.rule_definition['title']} as keys, found "
                    f"{', '.join(wrong.value)}",
                ) from None
            raise self.error(
                place, f"expected {wrong.definition['title']}, found {short_value(wrong.value)}"
            ) from None

    def _refuse_strange(self, place: Place, value: Any, form: Mapping[str, Any]) -> None:
        """Refuse an unknown key; suggest a required key that is missing and similar."""
        known = form.get("properties", {})
        for key in (
            value if isinstance(value, dict) and form.get("additionalProperties") is False else ()
        ):
            if key not in known:
                near = get_close_matches(
                    key, [each for each in form.get("required", ()) if each not in value], n=1
                )
                said = (
                    f"unknown key {key!r}; did you mean {near[0]!r}, which is missing?"
                    if near
                    else unknown_name("key", key, known)
                )
                raise self.error((*place, key), str(said)) from None

    def _place(self, name: str) -> Place:
        """The place of a schema error; keys may contain dots, so they are looked up."""
        place: Place = ()
        value: Any = self.data
        rest = name.removeprefix("data")
        while rest:
            if isinstance(value, list) and (index := re.match(r"\[(\d+)\]", rest)):
                place, value, rest = (
                    (*place, int(index[1])),
                    value[int(index[1])],
                    rest[index.end() :],
                )
            elif isinstance(value, dict) and (
                fits := [k for k in value if f"{rest}.".startswith((f".{k}.", f".{k}["))]
            ):
                key = max(fits, key=len)
                place, value, rest = (*place, key), value[key], rest[len(key) + 1 :]
            else:
                break
        return place


def format_place(place: Place) -> str:
    """A place in words: `models.local.temperature`, `contestants[1]`."""
    return "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in place
    ).removeprefix(".")


def short_value(value: Any) -> str:
    """A value for an error message, shortened."""
    text = KINDS.get(type(value)) or repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def expand_env(value: Any, form: Mapping[str, Any] | None = None) -> Any:
    """Replace every `${NAME}` by its value from the environment, as a number if the schema needs
    one."""
    form = form or {}
    if isinstance(value, dict):
        return {
            key: expand_env(each, form.get("properties", {}).get(key))
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [expand_env(each, {}) for each in value]
    if not isinstance(value, str) or not REFERENCE.search(value):
        return value
    text = expand_references(value)
    if form.get("type") == "integer" and re.fullmatch(r"\s*[+-]?\d{1,20}\s*", text):
        return int(text)
    return (
        float(text)
        if form.get("type") == "number" and re.fullmatch(r"\s*[+-]?\d{1,20}(\.\d{1,20})?\s*", text)
        else text
    )
