"""Word guessing, the game of AGE: find the others' words without giving your own away."""

from parley.tasks.word_guessing.bots import guesser
from parley.tasks.word_guessing.rule import WordGuessing

__all__ = ["WordGuessing"]
WordGuessing.bots = {"guesser": guesser}
