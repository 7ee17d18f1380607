"""KIEval: an interview about a benchmark question, graded reply by reply."""

from parley.tasks.kieval.bots import candidate, evaluator, imitator, interactor
from parley.tasks.kieval.rule import KIEval

__all__ = ["KIEval"]
KIEval.bots = {
    "candidate": candidate,
    "imitator": imitator,
    "interactor": interactor,
    "evaluator": evaluator,
}
