"""The words of experiences that a seat was shown, read from the matches that they come from."""

from __future__ import annotations

from collections.abc import Iterator

from parley.memory.experiences import Recalled, ShownExperience
from parley.memory.interactions import collect_interactions
from parley.rules.pool import Example
from parley.store import MatchRow, RunReader


def read_demonstrations(
    reader: RunReader, recalled: Recalled
) -> Iterator[tuple[ShownExperience, MatchRow | None, tuple[Example, ...]]]:
    """Every experience that a seat was shown, in order: where it comes from, and its turns."""
    brought = reader.brought() if any(each.match < 0 for each in recalled.shown) else []
    for shown in recalled.shown:
        if shown.match < 0:
            yield shown, None, brought[-shown.match - 1].turns
            continue
        turns: tuple[Example, ...] = ()
        for match in reader.recorded_matches(shown.match - 1, shown.match):
            interaction = collect_interactions(match).get(shown.seat)
            turns = interaction.turns if interaction is not None else ()
        yield shown, reader.match(shown.match), turns
