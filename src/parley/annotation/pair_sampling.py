"""Which pairs of conversations people compare: two models on one item, whose scores differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from random import Random
from typing import Any, NamedTuple

import orjson

from parley.errors import UsageError
from parley.results.main_stage import choose_main_stage
from parley.statistics.preferences import ConversationPair, ConversationSide
from parley.store.reader import RunReader

SAME = 1e-9  # scores closer than this are equal


class ScoredConversation(NamedTuple):
    """A scored conversation on record; two are comparable only if their basis is the same."""

    dataset: str
    item: str
    basis: str
    side: ConversationSide


def collect_conversations(
    readers: Sequence[RunReader], metric: str, role: str = ""
) -> list[ScoredConversation]:
    """All finished conversations of these runs that have a score in a metric, for one role if one
    is given."""
    seen: dict[str, str] = {}
    for reader in readers:
        again = reader.info.config.rejudged
        origin = reader.info.id if again is None else again.root or again.run
        if origin in seen:
            raise UsageError(
                f"{reader.info.id} and {seen[origin]} contain the same conversations, judged by "
                "different judges: give only one of these runs"
            )
        seen[origin] = reader.info.id
    names = name_contestants(readers)
    found = []
    for reader in readers:
        config, identity = reader.info.config, reader.info.identity
        panels = {
            role: [config.models[alias] for alias in panel]
            for role, panel in config.instruments.items()
        }
        rule = [identity["rule"], identity["version"], identity["prompts"], config.params, panels]
        items = {str(item["id"]): item for item in reader.run.items()}
        ended = [match for match in reader.matches.read() if match.has_ended]
        shown = choose_main_stage(config.evolve, {(match.stage, match.arm) for match in ended})
        played = {
            match.number: match.item
            for match in ended
            if match.state == "done"
            and match.item is not None
            and (shown is None or shown.includes(match.stage, match.arm))
        }
        for score in reader.scores.read():
            if (
                score.metric == metric
                and score.value is not None
                and score.match in played
                and role in ("", score.seat.role)
                and not score.unscored
            ):
                item = played[score.match]
                run = reader.info.id
                side = ConversationSide(run, score.match, names[run, score.alias], score.value)
                basis = orjson.dumps([*rule, items[item]]).decode()
                found.append(ScoredConversation(config.dataset or "", item, basis, side))
    return found


def name_contestants(readers: Iterable[RunReader]) -> dict[tuple[str, str], str]:
    """The name of each contestant by run and alias: the alias, with the run if one alias means
    different models."""
    meant: dict[str, dict[str, bytes]] = {}
    for reader in readers:
        for alias in reader.info.config.contestants:
            settings = orjson.dumps(reader.info.config.models[alias])
            meant.setdefault(alias, {})[reader.info.id] = settings
    return {
        (run, alias): alias if len(set(by.values())) == 1 else f"{alias}@{run}"
        for alias, by in meant.items()
        for run in by
    }


def list_pairs(found: Iterable[ScoredConversation]) -> list[ConversationPair]:
    """All pairs to sample from: different models, the same item and rule, different scores."""
    groups: dict[tuple[str, str, str], list[ConversationSide]] = {}
    for each in found:
        groups.setdefault((each.dataset, each.item, each.basis), []).append(each.side)
    return [
        ConversationPair(dataset, item, one, other)
        for (dataset, item, _), sides in sorted(groups.items())
        for one, other in combinations(sorted(sides), 2)
        if one.model != other.model and abs(one.score - other.score) > SAME
    ]


def sample_pairs(
    possible: Sequence[ConversationPair],
    count: int,
    seed: int,
    before: Sequence[ConversationPair] = (),
) -> list[ConversationPair]:
    """`count` more pairs, balanced over datasets, then pairs of models, then items. Which
    conversation is A is random."""
    rng = Random(f"{seed}|{len(before)}")
    used = {frozenset((pair.a[:2], pair.b[:2])) for pair in before}
    cells: dict[tuple[str, Any], list[ConversationPair]] = {}
    for pair in rng.sample(possible, len(possible)):
        if frozenset((pair.a[:2], pair.b[:2])) not in used:
            cells.setdefault(models_in_dataset(pair), []).append(pair)
    datasets, met, asked = (
        Counter(key(pair) for pair in before)
        for key in (lambda pair: pair.dataset, models_in_dataset, item_in_dataset)
    )
    found: list[ConversationPair] = []
    while len(found) < count and cells:
        order = rng.sample(sorted(cells), len(cells))
        place = min(order, key=lambda each: (datasets[each[0]], met[each]))
        pair = min(cells[place], key=lambda each: asked[item_in_dataset(each)])
        cells[place].remove(pair)
        if not cells[place]:
            del cells[place]
        datasets[pair.dataset] += 1
        met[place] += 1
        asked[item_in_dataset(pair)] += 1
        found.append(pair if rng.random() < 0.5 else pair._replace(a=pair.b, b=pair.a))
    return found


def models_in_dataset(pair: ConversationPair) -> tuple[str, tuple[str, ...]]:
    """The dataset of a pair, and its two models in one order."""
    return pair.dataset, tuple(sorted(pair.models))


def item_in_dataset(pair: ConversationPair) -> tuple[str, str]:
    """The dataset and the item of a pair: ids are unique within a dataset only."""
    return pair.dataset, pair.item
