"""For authors of tasks and providers: conformance suite, planted abilities, a rule fed by hand.

from parley.testing import check_planted, check_task, load_task
check_task(load_task("my_game.py"))
check_planted(load_task("my_game.py", rounds=1), order=["bot/better", "bot/worse"])
"""

from parley.testing.by_hand import ByHand, Listed, Speaking, fix_quotation_secret, play, transcript
from parley.testing.conformance import check_provider, check_task, load_task
from parley.testing.planted import check_planted
from parley.testing.server import Server

__all__ = [
    "ByHand",
    "Listed",
    "Server",
    "Speaking",
    "check_planted",
    "check_provider",
    "check_task",
    "fix_quotation_secret",
    "load_task",
    "play",
    "transcript",
]
