"""Paragraphs to translate: aligned segments in the formats of IWSLT and the Hugging Face Hub, and
rows with the fields of a `Paragraph`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from parley.datasets.files import LocatedRow
from parley.datasets.formats import Form, Row
from parley.errors import UsageError, describe_type
from parley.rules.items.paragraph import Paragraph
from parley.rules.languages import parse_language

SEGMENTS = 5  # segments of one document per paragraph
TEXTS, LANGUAGES = ("source", "reference"), ("source_language", "target_language")


def paragraph_fields(row: Row) -> dict[str, Any]:
    """The fields of a paragraph. A row need not name its languages: the task does."""
    found = {column: text_of_column(row.get(column), column) for column in TEXTS}
    codes = {
        column: language_code(text_of_column(row[column], column))
        for column in LANGUAGES
        if row.get(column) is not None
    }
    rest = {
        column: str(row[column]) for column in ("id", "document") if row.get(column) is not None
    }
    return {**found, **codes, **rest}


def aligned_paragraph(row: Row) -> dict[str, Any]:
    """The fields of a text in two languages: first the source, then the reference."""
    texts = row["translation"]
    if not isinstance(texts, Mapping) or len(texts) != 2:
        said = ", ".join(map(str, texts)) if isinstance(texts, Mapping) else type(texts).__name__
        raise ValueError(f"`translation` must have one text in each of two languages, found {said}")
    source, target = texts
    languages = {"source_language": source, "target_language": target}
    return paragraph_fields(
        {**row, **languages, "source": texts[source], "reference": texts[target]}
    )


def join_segments(rows: Sequence[LocatedRow]) -> Iterator[LocatedRow]:
    """Join consecutive segments of one document and language pair into paragraphs."""
    parts = [(each, paragraph_of_row(each)) for each in rows]
    counts: dict[tuple[str, str], int] = {}

    def belongs(part: tuple[LocatedRow, dict[str, Any]]) -> tuple[str, str]:
        return f"{part[1]['source_language']}-{part[1]['target_language']}", part[1].get(
            "document", ""
        )

    number = 0
    for (pair, document), found in groupby(parts, belongs):
        group = list(found)
        for start in range(0, len(group), SEGMENTS):
            chosen = group[start : start + SEGMENTS]
            (first, fields), number = chosen[0], number + 1
            at = counts[pair, document] = counts.get((pair, document), 0) + 1
            whole = {
                side: parse_language(fields[column]).between.join(part[side] for _, part in chosen)
                for side, column in zip(TEXTS, LANGUAGES, strict=True)
            }
            name = "/".join(filter(None, [pair, document, str(at)]))
            yield LocatedRow(first.where, number, {**fields, **whole, "id": name})


def paragraph_of_row(found: LocatedRow) -> dict[str, Any]:
    """The fields of a paragraph from a row; an error names the row."""
    if not isinstance(found.row, Mapping) or "translation" not in found.row:
        said = (
            ", ".join(map(str, found.row))
            if isinstance(found.row, Mapping)
            else type(found.row).__name__
        )
        raise UsageError(
            f"{found.where}: expected a column `translation`, as in the rows before; found {said}"
        )
    try:
        return aligned_paragraph(found.row)
    except ValueError as wrong:
        raise UsageError(f"{found.where} (aligned segments): {wrong}") from None


def text_of_column(found: Any, column: str) -> str:
    """A text that is not empty."""
    if not isinstance(found, str) or not found.strip():
        raise ValueError(
            f"the column `{column}` is empty"
            if isinstance(found, str)
            else f"the column `{column}` must be text, not {describe_type(found)}"
        )
    return "\n".join(found.splitlines()).strip()


def language_code(said: str) -> str:
    """The code of a language, given by any of its codes or names."""
    try:
        return parse_language(said).code
    except UsageError as wrong:
        raise ValueError(str(wrong)) from None


FORMS = (
    Form(Paragraph, "aligned segments", ("translation",), aligned_paragraph, joined=join_segments),
    Form(Paragraph, "paragraphs", TEXTS, paragraph_fields, also=LANGUAGES),
)
