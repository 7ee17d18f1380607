"""KIEval: an interview about a benchmark's question, graded reply by reply."""

from parley.tasks.kieval.rule import KIEval

__all__ = ["KIEval"]
