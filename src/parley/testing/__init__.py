"""For authors of tasks: a rule fed by hand, transcripts to keep, the conformance suite, and planted
abilities.

from parley.testing import check_planted, check_task
check_task(MyGame())
check_planted(MyGame(), order=["bot/better", "bot/worse"])
"""

from parley.testing.by_hand import ByHand, Listed, Speaking, play, transcript
from parley.testing.conformance import check_task
from parley.testing.planted import check_planted
from parley.testing.server import Server

__all__ = [
    "ByHand",
    "Listed",
    "Server",
    "Speaking",
    "check_planted",
    "check_task",
    "play",
    "transcript",
]
