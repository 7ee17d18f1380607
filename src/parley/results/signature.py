"""The signature of a score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from parley.plans.evolve_settings import describe_arm
from parley.store.config import Config, text_digest
from parley.store.types import RunInfo


def make_signature(info: RunInfo, matches: int) -> str:
    """Everything that a score depends on, in one line: two scores are comparable only if their
    signatures agree.

    `field` identifies the other contestants. It is left out for a single seat, and if all models
    met the same `adversary`.
    """
    config, identity = info.config, info.identity
    works = identity.get("works", {})  # digests instead of file names
    params = [f"{name}:{value}" for name, value in config.params.items() if name not in works]
    params += [f"{name}:{work}" for name, work in works.items()]
    seats = sum(
        count
        for role, count in identity["seats"].items()
        if identity["roles"][role] == "contestant"
    )
    facts = [
        f"plan:{config.plan}",
        f"seats:{seats}",
        f"matches:{matches}",
        f"standardise:{config.standardise}",
    ]
    if config.stop is not None:
        usual, given = identity["metrics"][0]["epsilon"], config.stop.half_width
        width = f"{usual if given is None else given:g}"
        top = f",top={config.stop.top}" if config.stop.top else ""
        facts.append(
            f"stop:half_width={width},alpha={config.stop.alpha:g},target={config.stop.target}{top}"
        )
        # which matches a model plays depends on how many are played at a time
        facts += [f"at_once:{config.at_once}"] if config.at_once is not None else []
    if config.evolve is not None:
        arm = config.evolve.arms[config.evolve.first]
        facts.append(f"evolve:{describe_arm(arm)}")
    if config.adversary is not None:
        model = config.models[config.adversary]["model"]
        facts.append(f"adversary:{model}@{digest_models(config, [config.adversary])}")
    elif seats > 1:
        facts.append(f"field:{digest_models(config, config.contestants)}")
    for role, panel in sorted(config.instruments.items()):
        judges = "+".join(str(config.models[alias]["model"]) for alias in panel)
        facts.append(f"{role}:{judges}@{digest_models(config, panel)}")
    if config.rejudged is not None:
        facts.append(f"rejudged:{config.rejudged.run}")
    if config.screening_run:
        facts.append("items:screened")
    if identity.get("items"):
        facts.append(f"items:{identity['items']}")
    facts += [f"{name}:{value}" for name, value in identity.get("basis", {}).items()]
    if identity.get("runs_code") and config.sandbox == "none":
        facts.append("sandbox:none")
    words = short_digest(sorted(identity["prompts"].items()))
    return "|".join(
        [
            identity["task"],
            *params,
            *facts,
            f"task:{identity['version']}",
            f"prompts:{words}",
            f"parley:{identity['parley']}",
        ]
    )


def digest_models(config: Config, aliases: Sequence[str]) -> str:
    """A digest of models and their options; replies do not depend on whether they come in
    batches."""
    found = [config.models[alias] for alias in aliases]
    return short_digest(
        [{key: value for key, value in each.items() if key != "batch_api"} for each in found]
    )


def short_digest(value: Any) -> str:
    """A short digest of a value."""
    return text_digest(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode())[:8]
