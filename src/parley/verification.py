"""Items that instruments are sure of (KIEval §3.2): before a run they are put to interactor and evaluator, in a run of its own.

What was found is kept and used again: by the same models, on the same dataset, with the same settings.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson

from parley import runs
from parley.config import FREE, Config, Verify
from parley.endings import Ending
from parley.errors import StoreError, UsageError
from parley.forecast import Forecast, forecast
from parley.plan import gathered
from parley.plan.confident import is_sure
from parley.prepared import Prepared, prepare
from parley.recorded import spec_of
from parley.store import files
from parley.store.archive import Archive


async def start(prepared: Prepared, folder: Path, *, concurrency: int | None = None, **watching: Any) -> Ending:
    """Play a new run; where its task wants that, on items that its instruments are sure of."""
    if prepared.task.vetting() is None or prepared.config.verified:
        return await runs.start(prepared, folder, concurrency=concurrency, **watching)
    asking = looking(prepared)
    path = found_before(asking, folder)
    play = runs.start(asking, folder, concurrency=concurrency, **watching)
    if path is not None:
        play.close()
        play = runs.go_on(asking, path, concurrency=concurrency, **watching)
    ending = await play
    if ending.state != "done":
        return ending
    return await runs.start(limited(prepared, ending.path), folder, concurrency=concurrency, **watching)


def foreseen(prepared: Prepared) -> Forecast:
    """What a run will take, with what it takes to find its items."""
    found = forecast(prepared)
    if prepared.task.vetting() is not None and not prepared.config.verified:
        asking = forecast(looking(prepared, keyless=True))
        found.rows += asking.rows
        found.notes.append(
            f"before that the items are put to {' and '.join(row['alias'] for row in asking.rows)}, as {asking.rows[0]['role']}: "
            "as many as are wanted, and more for every one that is not answered right"
        )
    return found


def looking(prepared: Prepared, keyless: bool = False) -> Prepared:
    """The run that looks for items."""
    vetting, config = prepared.task.vetting(), prepared.config
    assert vetting is not None
    models: dict[str, dict[str, Any]] = {}
    for alias in dict.fromkeys(alias for role in vetting.roles for alias in config.instruments.get(role, [])):
        if alias in prepared.functions or config.models[alias] not in models.values():  # one model in two roles is asked once
            models[alias] = config.models[alias]
    wanted = config.items or len(prepared.pool)
    found = Config(
        task=vetting.task,
        params=dict(vetting.params),
        models=models,
        contestants=list(models),
        plan="each",
        repeats=vetting.samples,
        seed=config.seed,
        dataset=config.dataset,
        columns=config.columns,
        budget_usd=config.budget_usd,
        max_calls=config.max_calls,
        concurrency=config.concurrency,
        name=f"items for {config.name}" if config.name else "",
        verify=Verify(wanted, vetting.metric, vetting.theta),
    )
    return prepare(found, items=list(prepared.pool.values()), functions=prepared.functions, keyless=keyless)


def found_before(asking: Prepared, folder: Path) -> Path | None:
    """A run that has looked for the same items in the same way, or has begun to."""
    wanted = alike(asking.config, asking.identity)
    for path in files(folder):
        try:
            with Archive(path) as archive:
                if archive.config.verify is not None and alike(archive.config, archive.identity) == wanted:
                    return path
        except StoreError:
            continue
    return None


def alike(config: Config, identity: dict[str, Any]) -> bytes:
    """All that decides which items are found."""
    asked = {name: value for name, value in asdict(config).items() if name not in FREE}
    return orjson.dumps(
        [asked, *(identity.get(name) for name in ("version", "rule", "prompts", "items"))], option=orjson.OPT_SORT_KEYS
    )


def limited(prepared: Prepared, path: Path) -> Prepared:
    """The run on the items that were found."""
    with Archive(path) as archive:
        config, blocks = archive.config, gathered({m["number"]: spec_of(m) for m in archive.matches()}, archive.finished())
        specs = {block.name: [spec_of(m) for m in archive.matches() if m["block"] == block.name] for block in blocks}
        run = archive.id
    assert config.verify is not None
    sure = [block.name for block in blocks if is_sure(block, specs[block.name], config.verify.metric, config.verify.theta)]
    if not sure:
        names = " and ".join(config.contestants)
        raise UsageError(f"{names} answered none of {len(blocks)} questions right ({run}): there is nothing to interview about")
    items = [prepared.pool[name] for name in sure]
    own = replace(prepared.config, items=len(items), verified=run)
    again = prepare(own, task=prepared.task, items=items, functions=prepared.functions)
    told = f"{len(items)} items that {' and '.join(config.contestants)} answered right, of {len(blocks)} looked at ({run})"
    return replace(again, cautions=[told, *again.cautions])
