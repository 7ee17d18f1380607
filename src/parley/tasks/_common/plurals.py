"""English plurals: find possible singulars of a word."""

from __future__ import annotations

import re
from functools import lru_cache

ENDINGS = [
    (re.compile(rf"{plural}$"), singular)
    for plural, singular in (
        (r"([^s])s", r"\1"),  # cakes, cookies, menus, TVs
        (r"(\w[sxz]|\w[cs]h|\w\wo)es", r"\1"),  # buses, boxes, dishes, potatoes; not toes
        (r"zzes", "z"),  # quizzes
        (r"(\w\w)ies", r"\1y"),  # cherries
        (r"(kni|li|wi)ves", r"\1fe"),  # knives; not caves
        (r"(al|ar|el|hoo|lea|loa|ol|shea|thie)ves", r"\1f"),  # leaves, wolves
        (r"(\w\w)ses", r"\1sis"),  # hypotheses
        (r"(\w\w)i", r"\1us"),  # cacti
        (r"(\w\w)ia", r"\1ium"),  # bacteria
        (r"(criteri|phenomen)a", r"\1on"),
        (r"(r|d)ices", r"\1ix"),  # matrices, appendices
        (r"(d|t)ices", r"\1ex"),  # indices, vertices
        (r"eaux", "eau"),  # gateaux
        (r"ae", "a"),  # larvae
        (r"men", "man"),  # also women, firemen
        (r"mice", "mouse"),
        (r"lice", "louse"),
        (r"geese", "goose"),
        (r"teeth", "tooth"),
        (r"feet", "foot"),
        (r"children", "child"),
        (r"people", "person"),
        (r"oxen", "ox"),
        (r"\bdice", "die"),
    )
]
NO_PLURALS = {"as", "does", "is", "news", "us"}  # they only look like plurals


@lru_cache(4096)
def possible_singulars(word: str) -> frozenset[str]:
    """A lower-case word and its possible singulars; not all of these exist as words."""
    if word in NO_PLURALS:
        return frozenset({word})
    return frozenset({word, *(plural.sub(singular, word) for plural, singular in ENDINGS)})
