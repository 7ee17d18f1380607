"""Machine translation: a translator and a proofreader work on a paragraph."""

from parley.tasks.translation.rule import Translation

__all__ = ["Translation"]
