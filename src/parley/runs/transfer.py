"""Transfers the memory of another run to a new one (`evolve.transfer`)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from parley.config.prepare import Prepared, prepare_to_read
from parley.errors import UsageError
from parley.memory.experiences import Experience, MemoryOwner
from parley.plans.arrangements import contestant_roles
from parley.plans.evolve_settings import EvolveArm
from parley.runs.experience_builder import ExperienceBuilder
from parley.store import Store, read_run


def load_transferred(prepared: Prepared, store: Store) -> list[Experience]:
    """The experiences that arms begin with: the memory of another run at its end."""
    evolve, found = prepared.config.evolve, list[Experience]()
    for name, arm in evolve.arms.items() if evolve is not None else ():
        if arm.transfer:
            setting = f"evolve.transfer: {arm.transfer}"
            memory = memory_at_end(arm.transfer, store, prepared, setting)
            found += [replace(each, arm=name) for each in memory]
    return found


def memory_at_end(run: str, store: Store, prepared: Prepared, setting: str) -> list[Experience]:
    """What the models of this run remember at the end of another. Errors begin with `setting`."""
    ref = store.find(run)
    other = prepare_to_read(ref)
    settings = other.config.evolve
    name, arm = ("", EvolveArm()) if settings is None else next(iter(settings.arms.items()))
    wanted = prepared.config.contestants
    for alias in wanted:
        if alias not in other.config.contestants:
            raise UsageError(
                f"{setting} has no model with the alias `{alias}`: give your model one of the "
                f"aliases in that run ({', '.join(other.config.contestants)})"
            )
    builder = ExperienceBuilder(other, {name: arm})
    with read_run(ref) as reader:
        last = max((match.stage for match in reader.matches.read()), default=0)
        builder.load(reader)
    roles = set(contestant_roles(prepared.task)) & set(builder.rules[name])
    if not roles:
        raise UsageError(
            f"{setting} has no experiences for any role of the task {prepared.task.name}: "
            "choose a run of the same task"
        )
    series = range(1, other.config.repeats + 1)
    return [
        each
        for alias, role, number in product(wanted, sorted(roles), series)
        for each in builder.memory(MemoryOwner(alias, role, name, number), last + 1)
    ]
