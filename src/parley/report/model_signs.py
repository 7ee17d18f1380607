"""The sign of each model: one colour and one shape, on every figure and page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from parley.results.result import RunResult

COLOURS = 9  # --m0 … --m8 of the style sheet
SHAPES = (
    '<circle r="5"/>',
    '<rect x="-4.6" y="-4.6" width="9.2" height="9.2"/>',
    '<path d="M0-6.2 6.2 0 0 6.2-6.2 0z"/>',
    '<path d="M0-5.8 5.8 4.6H-5.8z"/>',
    '<path d="M0 5.8 5.8-4.6H-5.8z"/>',
    '<path d="M-2-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z"/>',
    '<path d="M0-6.2 5.9-1.9 3.6 5H-3.6L-5.9-1.9z"/>',
)
RING = '<circle r="4.2" fill="none" stroke="currentColor" stroke-width="2.2"/>'


@dataclass(frozen=True)
class ModelSigns:
    """The signs of models, by their place in the configuration; instruments are grey rings."""

    places: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, contestants: Iterable[str]) -> ModelSigns:
        return cls({alias: place for place, alias in enumerate(contestants)})

    def place(self, label: str) -> int:
        """The place of a model in the configuration; after all of them where it is none."""
        return self.places.get(label, len(self.places))

    def colour(self, label: str) -> str:
        """The class of a model's colour; grey where the label is no contestant."""
        place = self.places.get(label)
        return "grey" if place is None else f"c{place % COLOURS}"

    def shape(self, label: str) -> str:
        place = self.places.get(label)
        return RING if place is None else SHAPES[place % len(SHAPES)]

    def sign(self, label: str) -> str:
        """The sign of a model before its name."""
        return (
            f'<svg class="{self.colour(label)}" viewBox="-7 -7 14 14" aria-hidden="true">'
            f'<g class="dot">{self.shape(label)}</g></svg>'
        )


def choose_signs(results: Iterable[RunResult]) -> ModelSigns:
    """The signs of the models of several runs: a model that played in two runs has one sign."""
    aliases = dict[str, None]()
    for result in results:
        aliases |= dict.fromkeys(result.info.config.contestants)
    return ModelSigns.of(aliases)
