"""For authors of tasks: a rule fed by hand, transcripts to keep, and the conformance suite.

from parley.testing import check_task
check_task(MyGame())
"""

from parley.testing.conformance import check_task
from parley.testing.table import ByHand, Listed, Speaking, play, transcript

__all__ = ["ByHand", "Listed", "Speaking", "check_task", "play", "transcript"]
