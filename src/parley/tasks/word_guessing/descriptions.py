"""Turns of word guessing: the form of a description with guesses, and what a bot has to say of a word."""

from __future__ import annotations

from functools import cache
from random import Random

from parley.rules.items import WordPair
from parley.rules.pool import Seat
from parley.rules.readers import Fields
from parley.tasks._common.word_matching import matches, mentions

THINGS = (
    "anchor", "attic", "avalanche", "bamboo", "barrel", "beacon", "bellows", "blizzard", "cathode", "cello", "chimney", "cobweb",
    "compost heap", "cork", "dune", "easel", "ember", "flint", "fjord", "gargoyle", "gravel", "hammock", "harvest", "hourglass",
    "ivy", "kite", "lantern", "loom", "magnet", "marble", "monsoon", "nutmeg", "obelisk", "orchard", "paraffin", "parchment",
    "pendulum", "porcelain", "quarry", "quill", "ribbon", "saddle", "sawdust", "scaffold", "sundial", "thimble", "trellis",
    "raft", "tripod", "velvet", "vineyard", "wax seal", "weathervane", "whirlpool", "wicker", "xylophone", "yarn", "zephyr",
)  # fmt: skip
TELLING = ("It goes with {}.", "People think of {} then.", "It is never far from {}.", "Where there is {}, it may be.", "Say {}.")
VAGUE = (
    "common", "plain", "useful", "known", "old", "simple", "liked", "usual", "real", "ordinary", "varied", "familiar", "modest",
    "various", "general", "typical",
)  # fmt: skip
EACH = 6  # things that a word is associated with


def field(other: Seat) -> str:
    """Where a reply names the word of a seat."""
    return f"player_{other.number}"


@cache
def form(*others: Seat) -> Fields:
    """A description and a guess for every other seat."""
    guess = "your guess at the word of {}, or an empty text"
    guesses = {field(other): {"type": "string", "description": guess.format(other)} for other in others}
    return Fields({"description": {"type": "string", "description": "your description"}, **guesses})


@cache
def associations(pair: WordPair) -> dict[str, list[str]]:
    """What each word of a pair goes with, always the same, and under "" what goes with neither; never a name of either."""
    names = {name for word in (pair.a, pair.b) for name in pair.names(word)}
    free = [thing for thing in THINGS if not any(mentions(thing, name) or matches(thing, [name]) for name in names)]
    drawn = Random(f"{pair.a}|{pair.b}").sample(free, len(free))
    return {pair.a: drawn[:EACH], pair.b: drawn[EACH : 2 * EACH], "": drawn[2 * EACH :]}
