"""Texts to translate."""

from __future__ import annotations

from dataclasses import dataclass

from parley.rules.languages import parse_language


@dataclass(frozen=True)
class Paragraph:
    """A text to translate, with a reference translation.

    Languages are stored as the codes of `parley.rules.languages`; empty if unknown.
    """

    id: str
    source: str
    reference: str
    source_language: str = ""
    target_language: str = ""
    document: str = ""  # the document it is part of

    def __post_init__(self) -> None:
        for side in ("source_language", "target_language"):
            if said := getattr(self, side):
                object.__setattr__(self, side, parse_language(said).code)
        if self.source_language and self.source_language == self.target_language:
            raise ValueError(
                "the source and the target language must differ, but both are "
                f"{self.source_language}"
            )

    @property
    def pair(self) -> str:
        return f"{self.source_language}-{self.target_language}"
