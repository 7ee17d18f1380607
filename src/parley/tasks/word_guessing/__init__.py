"""Word guessing, the game of AGE: guess the others' word without giving yours away."""

from parley.tasks.word_guessing.bots import guesser
from parley.tasks.word_guessing.rule import WordGuessing

__all__ = ["WordGuessing"]
WordGuessing.bots = {"guesser": guesser}
