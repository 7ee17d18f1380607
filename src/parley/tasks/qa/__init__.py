"""Question answering: a benchmark in its usual form, with worked examples."""

from parley.tasks.qa.rule import QA

__all__ = ["QA"]
