"""Programming problems: both editions of MBPP, HumanEval, and rows with the fields of a
`Problem`."""

from __future__ import annotations

import ast
import json
import warnings
from contextlib import suppress
from typing import Any

from parley.datasets.formats import Form, Row
from parley.datasets.reference_programs import (
    can_fail,
    lines_for_tests,
    names_called,
    names_defined,
    parse_program,
    signature_of,
    with_unix_newlines,
)
from parley.errors import describe_type
from parley.rules.items.problem import Problem
from parley.tables import shorten


def optional_text(row: Row, column: str) -> str:
    """The text of a column; empty if it is missing."""
    found = row.get(column)
    if found is not None and not isinstance(found, str):
        raise ValueError(f"the column `{column}` must be text, not {describe_type(found)}")
    return with_unix_newlines(found or "")


def text_list(row: Row, column: str) -> list[str]:
    """The texts of a column; a single text is a list of one."""
    found = unpack_list(row.get(column))
    found = [] if found is None or found == "" else [found] if isinstance(found, str) else found
    if not isinstance(found, list | tuple) or not all(isinstance(each, str) for each in found):
        raise ValueError(
            f"the column `{column}` must be a list of texts, not {shorten(repr(found))}"
        )
    return [with_unix_newlines(each) for each in found]


def unpack_list(found: Any) -> Any:
    """Parse a cell that holds a list as text, in JSON or Python syntax; anything else stays as it
    is."""
    if isinstance(found, str) and found.strip()[:1] + found.strip()[-1:] == "[]":
        for read in (json.loads, ast.literal_eval):
            with (
                suppress(ValueError, SyntaxError, RecursionError, MemoryError),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")
                return read(found.strip())
    return found


def describe_from_reference(fields: dict[str, Any]) -> dict[str, Any]:
    """Check a problem, and take its names and signature from the reference if they are missing."""
    reference, tests = (
        fields.get("reference", ""),
        [fields.get("setup", ""), *fields["tests"], *fields.get("challenge", ())],
    )
    if not fields["tests"] and not fields.get("cases"):
        raise ValueError("this problem has neither `tests` nor `cases`: add one of them")
    if fields["tests"] and fields.get("cases"):
        raise ValueError("this problem has both `tests` and `cases`: remove one of them")
    for test in tests:
        parse_program(test, "a test")
    for number, test in enumerate(fields["tests"], 1):
        if not test.strip():
            raise ValueError(f"test {number} is empty")
        if not can_fail(test, [fields.get("setup", ""), fields.get("prelude", "")]):
            raise ValueError(
                f"test {number} asserts nothing, so every program would pass it: "
                f"{shorten(test.strip())!r}"
            )
    if wrong := [name for name in fields.get("names", ()) if not name.isidentifier()]:
        raise ValueError(
            f"`names` must list names of functions or classes, not {shorten(wrong[0])!r}"
        )
    if not fields["tests"] or not reference:
        return fields
    names = fields.get("names") or names_called(reference, tests)
    prelude = fields.get("prelude", "")
    if lines := lines_for_tests(reference, names, [prelude, *tests]):
        fields = {**fields, "prelude": f"{lines}{prelude}"}
    return {
        **fields,
        "names": names,
        "signature": fields.get("signature") or signature_of(reference, names),
    }


def mbpp_fields(row: Row) -> dict[str, Any]:
    """MBPP: the program, then the setup, then the tests."""
    return describe_from_reference(
        {
            **id_of_problem(row),
            "text": optional_text(row, "text"),
            "reference": optional_text(row, "code"),
            "setup": optional_text(row, "test_setup_code"),
            "tests": text_list(row, "test_list"),
            "challenge": text_list(row, "challenge_test_list"),
        }
    )


def sanitised_mbpp_fields(row: Row) -> dict[str, Any]:
    """MBPP as its authors revised it."""
    return describe_from_reference(
        {
            **id_of_problem(row),
            "text": optional_text(row, "prompt"),
            "reference": optional_text(row, "code"),
            "setup": "\n".join(text_list(row, "test_imports")),
            "tests": text_list(row, "test_list"),
        }
    )


def human_eval_fields(row: Row) -> dict[str, Any]:
    """HumanEval: the prompt is also the prelude, because tests use its helper functions."""
    prompt, entry = optional_text(row, "prompt"), optional_text(row, "entry_point")
    reference = prompt + optional_text(row, "canonical_solution")
    if entry not in names_defined(reference):
        raise ValueError(
            f"the reference solution does not define the function {entry!r} that "
            "`entry_point` names"
        )
    return describe_from_reference(
        {
            **id_of_problem(row),
            "text": prompt,
            "reference": reference,
            "prelude": prompt,
            "tests": [f"{optional_text(row, 'test')}\ncheck({entry})"],
            "names": (entry,),
        }
    )


def problem_fields(row: Row) -> dict[str, Any]:
    """The fields of a problem; missing names and signature are taken from the reference."""
    texts = {
        column: optional_text(row, column)
        for column in ("text", "signature", "setup", "prelude", "reference")
    }
    lists = {column: text_list(row, column) for column in ("tests", "names", "challenge")}
    own = {"id": row["id"]} if row.get("id") else {}
    own |= {"cases": unpack_list(row["cases"])} if row.get("cases") else {}
    own |= {"inside": row["inside"]} if row.get("inside") else {}
    return describe_from_reference({**own, **texts, **lists})


def id_of_problem(row: Row) -> dict[str, Any]:
    return {"id": row["task_id"]} if row.get("task_id") is not None else {}


MORE = ("id", "signature", "names", "setup", "prelude", "reference", "challenge", "inside")
FORMS = (
    Form(
        Problem,
        "HumanEval",
        ("prompt", "entry_point", "canonical_solution", "test"),
        human_eval_fields,
        ("task_id",),
    ),
    Form(
        Problem,
        "MBPP sanitised",
        ("prompt", "code", "test_list"),
        sanitised_mbpp_fields,
        ("task_id", "test_imports"),
    ),
    Form(
        Problem,
        "MBPP",
        ("text", "code", "test_list"),
        mbpp_fields,
        ("task_id", "test_setup_code", "challenge_test_list"),
    ),
    Form(Problem, "problems with tests", ("text", "tests"), problem_fields, MORE),
    Form(Problem, "problems with cases", ("text", "cases"), problem_fields, MORE),
)
