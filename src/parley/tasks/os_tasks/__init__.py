"""Tasks at the command line of a Linux machine, in the form of AgentBench's os tasks."""

from parley.tasks.os_tasks.bots import answerer, cheater, idler, solver
from parley.tasks.os_tasks.rule import OSTasks

__all__ = ["OSTasks"]
OSTasks.bots = {"solver": solver, "idler": idler, "answerer": answerer, "cheater": cheater}
