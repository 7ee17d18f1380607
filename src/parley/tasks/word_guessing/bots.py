"""Bots that play word guessing."""

from __future__ import annotations

from functools import cache
from random import Random

from parley import BotView, WordPair
from parley.tasks._common.word_matching import mentions_word, names_word


@cache
def associated_words(pair: WordPair) -> dict[str, list[str]]:
    """Fixed associations of each word of a pair, and under "" words that go with neither; never a
    name of either word."""
    names = {name for word in (pair.a, pair.b) for name in pair.names(word)}
    free = [
        thing
        for thing in THINGS
        if not any(mentions_word(thing, name) or names_word(thing, [name]) for name in names)
    ]
    drawn = Random(f"{pair.a}|{pair.b}").sample(free, len(free))
    return {pair.a: drawn[:EACH], pair.b: drawn[EACH : 2 * EACH], "": drawn[2 * EACH :]}


def guesser(bot: BotView, strength: float = 0.5, openness: float = 0.5) -> dict[str, str]:
    """Gives a real hint in the share `openness` of its turns and is vague otherwise; understands others' hints with probability `strength`."""  # noqa: E501
    pair, rng, known = bot.item, bot.rng, associated_words(bot.item)
    told = "\n".join(turn["content"] for turn in bot.view)
    own = pair.a if f"“{pair.a}”" in bot.view[0]["content"] else pair.b
    telling = (
        [lead.format(thing) for thing in known[own] for lead in TELLING]
        if rng.random() < openness
        else []
    )
    vague = [f"It is {one} and {other}." for one in VAGUE for other in VAGUE if one != other]
    reply = {
        "description": rng.choice(
            [each for each in telling if each not in told] or [v for v in vague if v not in told]
        )
    }
    for name in list(bot.view.expect.fields)[1:]:  # type: ignore[attr-defined]
        said = " ".join(said for who, said in bot.quoted if name == who.lower().replace(" ", "_"))
        clear = [word for word in (pair.a, pair.b) if any(thing in said for thing in known[word])]
        reply[name] = clear[0] if clear and rng.random() < strength else rng.choice(known[""])
    return reply


THINGS = (
    "anchor", "attic", "avalanche", "bamboo", "barrel", "beacon", "bellows", "blizzard", "cathode",
    "cello", "chimney", "cobweb", "compost heap", "cork", "dune", "easel", "ember", "flint",
    "fjord", "gargoyle", "gravel", "hammock", "harvest", "hourglass", "ivy", "kite", "lantern",
    "loom", "magnet", "marble", "monsoon", "nutmeg", "obelisk", "orchard", "paraffin", "parchment",
    "pendulum", "porcelain", "quarry", "quill", "ribbon", "saddle", "sawdust", "scaffold",
    "sundial", "thimble", "trellis", "raft", "tripod", "velvet", "vineyard", "wax seal",
    "weathervane", "whirlpool", "wicker", "xylophone", "yarn", "zephyr",
)  # fmt: skip


TELLING = (
    "It goes with {}.",
    "People think of {} then.",
    "It is never far from {}.",
    "Where there is {}, it may be.",
    "Say {}.",
)


VAGUE = (
    "common", "plain", "useful", "known", "old", "simple", "liked", "usual", "real", "ordinary",
    "varied", "familiar", "modest", "various", "general", "typical",
)  # fmt: skip


EACH = 6  # associations per word
