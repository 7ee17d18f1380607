"""JSON schemas in the dialects of endpoints that constrain replies."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
LENGTHS = frozenset({"minItems", "maxItems"})
LIMITS = NUMBERS | LENGTHS | {"minLength", "maxLength", "pattern", "format", "uniqueItems"}
NONE: frozenset[str] = frozenset()
STRUCTURE = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "description",
    "title",
}
REMARKS = {"default", "examples", "$comment", "$schema", "$id"}  # they do not constrain replies
# Keywords that strict dialects lack; without them, a schema would mean something else.
BEYOND = {
    "allOf",
    "not",
    "if",
    "patternProperties",
    "prefixItems",
    "$ref",
    "$dynamicRef",
    "dependentSchemas",
}
TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
SYNTAX = 24  # tokens left for the names and punctuation around each string of an object
SHORTEST = 20  # characters that a string may have, however many strings there are
ITEMS = 8  # the most items of a list without a limit


class NotExpressible(Exception):
    """A schema that a dialect cannot express."""


def make_portable(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema for endpoints that support most of JSON Schema: every value has a type, and every
    object is closed."""
    kept = dict(schema)
    if (
        "enum" in kept
        and "type" not in kept
        and all(isinstance(word, str) for word in kept["enum"])
    ):
        kept["type"] = "string"
    if kept.get("type") == "object":
        kept["properties"] = {
            name: make_inner_portable(value) for name, value in kept.get("properties", {}).items()
        }
        kept.setdefault("additionalProperties", False)
    if "items" in kept:
        kept["items"] = make_inner_portable(kept["items"])
    for several in ("anyOf", "oneOf", "allOf"):
        if several in kept:
            kept[several] = [make_inner_portable(each) for each in kept[several]]
    return kept


def make_inner_portable(schema: Any) -> Any:
    return make_portable(schema) if isinstance(schema, Mapping) else schema


def make_strict(schema: Mapping[str, Any], limits: frozenset[str]) -> dict[str, Any] | None:
    """A schema by the rules of strict modes: objects are closed and require all of their
    properties, and every value has a type.

    Limits that are not supported go into the description. None if the schema cannot be expressed.
    """
    try:
        return apply_strict_rules(schema, limits)
    except NotExpressible:
        return None


def apply_strict_rules(schema: Any, limits: frozenset[str]) -> dict[str, Any]:
    """Apply strict rules to a schema and everything inside it. The result never allows more than
    the original."""
    if not isinstance(schema, Mapping) or BEYOND & schema.keys():
        raise NotExpressible
    given = {
        "anyOf" if name == "oneOf" else name: value
        for name, value in schema.items()
        if name not in REMARKS
    }
    kept = {name: value for name, value in given.items() if name in STRUCTURE | limits}
    if told := ", ".join(f"{name} {value}" for name, value in given.items() if name not in kept):
        kept["description"] = f"{kept['description']} ({told})" if "description" in kept else told
    words = kept["enum"] if "enum" in kept else [kept["const"]] if "const" in kept else None
    if "type" not in kept and words is not None:
        kinds = sorted({TYPES.get(type(word), "") for word in words})
        if "" in kinds:
            raise NotExpressible
        kept["type"] = kinds[0] if len(kinds) == 1 else kinds
    if "type" not in kept and "anyOf" not in kept:
        raise NotExpressible
    types = kept.get("type")
    types = [types] if isinstance(types, str) else types or ()
    if "object" in types:
        if isinstance(kept.get("additionalProperties"), Mapping) or not kept.get("properties"):
            raise NotExpressible
        kept["properties"] = {
            name: apply_strict_rules(value, limits) for name, value in kept["properties"].items()
        }
        kept |= {"required": list(kept["properties"]), "additionalProperties": False}
    if "array" in types:
        kept["items"] = apply_strict_rules(kept.get("items"), limits)
    if "anyOf" in kept:
        kept["anyOf"] = [apply_strict_rules(each, limits) for each in kept["anyOf"]]
    return kept


def make_compact(schema: Mapping[str, Any], tokens: int) -> dict[str, Any]:
    """A schema whose objects are complete before the tokens run out: everything in them has a
    limit."""
    room = max(SHORTEST, tokens // max(1, count_open_strings(schema)) - SYNTAX)
    guided = {"whitespace_flexible": False, "key_separator": ": ", "item_separator": ", "}
    return {**limit_lengths(schema, room), "x-guidance": guided}


def count_open_strings(schema: Mapping[str, Any]) -> int:
    """How many strings without a limit an object of this schema may contain."""
    if "enum" in schema or "const" in schema:
        return 0
    match schema.get("type"):
        case "string":
            return 1
        case "object":
            return sum(count_open_strings(inner) for inner in schema.get("properties", {}).values())
        case "array":
            return schema.get("maxItems", ITEMS) * count_open_strings(schema.get("items", {}))  # type: ignore[no-any-return]
    return 0


def limit_lengths(schema: Mapping[str, Any], room: int) -> dict[str, Any]:
    """Limit the length of strings and lists without a limit, and decimals to two places."""
    made, inside = dict(schema), partial(limit_lengths, room=room)
    if "enum" in made or "const" in made:
        return made
    match made.get("type"):
        case "string" if not made.keys() & {"maxLength", "pattern", "format"}:
            made["maxLength"] = max(room, made.get("minLength", 0))
        case "number":
            made.setdefault("multipleOf", 0.01)
        case "array":
            made.setdefault("maxItems", max(ITEMS, made.get("minItems", 0)))
            made["items"] = inside(made.get("items", {}))
        case "object":
            made["properties"] = {
                name: inside(inner) for name, inner in made.get("properties", {}).items()
            }
    return made
