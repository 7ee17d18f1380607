"""Pairs of words: rows with the fields of a `WordPair`, or with two columns of words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from parley.datasets.formats import Form, Row
from parley.errors import describe_type
from parley.rules.items.word_pair import WordPair
from parley.tasks._common.word_matching import find_confusable, fold_phrase

ALSO = ("id", "topic", "synonyms_a", "synonyms_b")
OTHER_NAMES = {"word_a": "a", "word_b": "b", "word1": "a", "word2": "b"}


def word_pair_fields(row: Row) -> dict[str, Any]:
    """The fields of a pair. Its words must be different enough to tell guesses apart. Without an
    id, its sorted words are the id."""
    a, b = (read_word(row.get(name), name) for name in ("a", "b"))
    synonyms = {name: read_word_list(row.get(name), name) for name in ("synonyms_a", "synonyms_b")}
    if same := find_confusable((a, *synonyms["synonyms_a"]), (b, *synonyms["synonyms_b"])):
        raise ValueError(
            f"the two words are too similar: a guess of {same[0]!r} would count as {same[1]!r}"
        )
    rest = {
        name: str(row[name]).strip() for name in ("id", "topic") if row.get(name) not in (None, "")
    }
    return {"id": "/".join(sorted((a, b))), **rest, "a": a, "b": b, **synonyms}


def word_pair_fields_from_aliases(row: Row) -> dict[str, Any]:
    """The same, for other common column names."""
    return word_pair_fields({OTHER_NAMES.get(name, name): value for name, value in row.items()})


def read_word(found: Any, column: str) -> str:
    """A word, or a name of a few words."""
    if not isinstance(found, str) or not fold_phrase(found):
        said = "nothing" if isinstance(found, str) or found is None else describe_type(found)
        raise ValueError(f"the column `{column}` must be a word, found {said}")
    return " ".join(found.split())


def read_word_list(found: Any, column: str) -> tuple[str, ...]:
    """Several words: a list, a JSON list as text, or words separated by commas or semicolons."""
    if found is None or found == "":
        return ()
    if isinstance(found, str) and found.lstrip().startswith("["):
        try:
            found = json.loads(found)
        except ValueError as wrong:
            raise ValueError(
                f"the column `{column}` starts with '[', but is not a JSON list: {wrong}"
            ) from None
    elif isinstance(found, str):
        found = [each for each in found.replace(";", ",").split(",") if each.strip()]
    if isinstance(found, Mapping) or not isinstance(found, list | tuple):
        raise ValueError(
            f"the column `{column}` must be a list of words, not {describe_type(found)}"
        )
    return tuple(read_word(each, column) for each in found)


FORMS = (
    Form(
        WordPair,
        "word pairs",
        ("a", "b"),
        word_pair_fields,
        also=ALSO,
        in_order=("a", "b", "topic"),
    ),
    Form(WordPair, "word pairs", ("word_a", "word_b"), word_pair_fields_from_aliases, also=ALSO),
    Form(WordPair, "word pairs", ("word1", "word2"), word_pair_fields_from_aliases, also=ALSO),
)
