"""Command-line tasks on a Linux machine, in the format of AgentBench's OS tasks."""

from parley.tasks.os_tasks.bots import answerer, cheater, idler, solver
from parley.tasks.os_tasks.rule import OSTasks

__all__ = ["OSTasks"]
OSTasks.bots = {"solver": solver, "idler": idler, "answerer": answerer, "cheater": cheater}
