"""Pairs of words: rows with the fields of a `WordPair`, or with two columns of words and no
more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from parley.datasets.formats import Form, Row
from parley.rules.items import WordPair
from parley.tasks._common.word_matching import find_confusable, fold_phrase

ALSO = ("id", "topic", "synonyms_a", "synonyms_b")
OTHER_NAMES = {"word_a": "a", "word_b": "b", "word1": "a", "word2": "b"}


def word_pair_fields(row: Row) -> dict[str, Any]:
    """The fields of a pair, whose words a guess can tell apart; its words in the order of letters
    serve where it has no id."""
    a, b = (read_word(row.get(name), name) for name in ("a", "b"))
    synonyms = {name: read_word_list(row.get(name), name) for name in ("synonyms_a", "synonyms_b")}
    if same := find_confusable((a, *synonyms["synonyms_a"]), (b, *synonyms["synonyms_b"])):
        raise ValueError(
            f"wanted two words that a guess can tell apart, and {same[0]!r} counts as {same[1]!r}"
        )
    rest = {
        name: str(row[name]).strip() for name in ("id", "topic") if row.get(name) not in (None, "")
    }
    return {"id": "/".join(sorted((a, b))), **rest, "a": a, "b": b, **synonyms}


def word_pair_fields_from_aliases(row: Row) -> dict[str, Any]:
    """The same under names that such columns often have."""
    return word_pair_fields({OTHER_NAMES.get(name, name): value for name, value in row.items()})


def read_word(found: Any, column: str) -> str:
    """A word, or a name of a few words."""
    if not isinstance(found, str) or not fold_phrase(found):
        said = "none" if isinstance(found, str) or found is None else type(found).__name__
        raise ValueError(f"{column} wants a word, found {said}")
    return " ".join(found.split())


def read_word_list(found: Any, column: str) -> tuple[str, ...]:
    """Several words: a list, also as JSON, or a text in which commas or semicolons stand between
    them."""
    if found is None or found == "":
        return ()
    if isinstance(found, str) and found.lstrip().startswith("["):
        try:
            found = json.loads(found)
        except ValueError as wrong:
            raise ValueError(f"{column} begins like a list in JSON, but is none: {wrong}") from None
    elif isinstance(found, str):
        found = [each for each in found.replace(";", ",").split(",") if each.strip()]
    if isinstance(found, Mapping) or not isinstance(found, list | tuple):
        raise ValueError(f"{column} wants a list of words, found {type(found).__name__}")
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
