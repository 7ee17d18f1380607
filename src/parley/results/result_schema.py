"""The JSON schema of `parley.result/1`, which `--json` prints."""

from __future__ import annotations

from typing import Any

from parley.results.part import general_parts
from parley.results.types import ResultHead, json_schema


def result_schema() -> dict[str, Any]:
    """The JSON schema of `parley.result/1`: the head of a result, and its general parts."""
    schema = json_schema(ResultHead)
    for part in general_parts():
        found = json_schema(part.result)
        if part.spread:
            schema["properties"] |= found["properties"]
            schema["required"] += found["required"]
            continue
        known = found if part.is_sequence else {"anyOf": [found, {"type": "null"}]}
        schema["properties"][part.json_key] = known
        schema["required"].append(part.json_key)
    about = "results of the task's own parts, by TASK.PART"
    schema["properties"]["parts"] = {"type": "object", "description": about}
    about = "those of `parts` that were stored with the run and not recomputed"
    names = {"type": "array", "items": {"type": "string"}, "description": about}
    schema["properties"]["stored_parts"] = names
    schema["required"] += ["parts", "stored_parts"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
