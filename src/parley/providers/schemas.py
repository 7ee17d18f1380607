"""JSON schemas in the dialect of endpoints that constrain replies to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
LIMITS = {*BOUNDS, "minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"}


def portable(schema: Mapping[str, Any], limits: bool = True) -> dict[str, Any]:
    """A schema in which every word has a type and every object is closed; where limits are not taken, they are said in words."""
    kept = {name: value for name, value in schema.items() if limits or name not in LIMITS}
    if told := ", ".join(f"{name} {value}" for name, value in schema.items() if name not in kept):
        kept["description"] = f"{kept['description']} ({told})" if "description" in kept else told
    if "enum" in kept and "type" not in kept and all(isinstance(word, str) for word in kept["enum"]):
        kept["type"] = "string"
    if kept.get("type") == "object":
        kept["properties"] = {name: inner(value, limits) for name, value in kept.get("properties", {}).items()}
        kept.setdefault("additionalProperties", False)
    if "items" in kept:
        kept["items"] = inner(kept["items"], limits)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in kept:
            kept[several] = [inner(each, limits) for each in kept[several]]
    return kept


def inner(schema: Any, limits: bool) -> Any:
    return portable(schema, limits) if isinstance(schema, Mapping) else schema
