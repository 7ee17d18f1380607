"""Code generation and review, with hidden tests for every version of a program."""

from parley.tasks.code_review.rule import CodeReview

__all__ = ["CodeReview"]
