"""What a record depends on besides its configuration: the rule, the prompts, the program."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from parley import __version__
from parley.config.rule_digest import digest_without_bots, is_comparable, rule_digest
from parley.errors import ReplayError, UsageError
from parley.match.claims import SCHEME
from parley.match.task_errors import errors_of_task
from parley.providers._secrets import secrets_in_environment
from parley.rules.prompts import Prompt, prompt_address
from parley.rules.task import Metric, Task
from parley.store.config import MAY_CHANGE, MAY_MOVE, Config, text_digest


def run_identity(
    task: Task,
    seats: Mapping[str, int],
    prompts: Mapping[str, Prompt],
    items: Sequence[tuple[str, bytes]] = (),
) -> dict[str, Any]:
    """What a record depends on besides the configuration: the rule, the prompts, the program.

    Roles and metrics stand here too, so that results can be computed from the file alone.
    """
    with errors_of_task(task, "score_basis"):
        basis = dict(task.score_basis())
    return {
        "parley": __version__,
        "python": platform.python_version(),
        # what broken JSON is mended with: a record without it was read without mending
        "mends": version("json-repair"),
        # how names are masked: a record without it was masked by scheme 1, for the rule as well
        "masking": SCHEME,
        # numbers that a rule computes are rounded in prompts: a record without it has all digits
        "rounds_numbers": True,
        "task": task.name,
        "version": task.version,
        **({"runs_code": True} if task.runs_code else {}),
        "rule": rule_digest(type(task)),
        # only where a file of the user's has bots: these may be mended while a run is stopped
        **({"rule_without_bots": alone} if (alone := digest_without_bots(type(task))) else {}),
        "roles": {
            name: "instrument" if role.instrument else "contestant"
            for name, role in task.roles.items()
        },
        "seats": dict(seats),
        "metrics": [metric_facts(metric) for metric in task.metrics(seats)],
        **({"basis": basis} if basis else {}),
        "items": f"{len(items)}@{text_digest(repr(items))[:8]}" if items else None,
        "texts": {
            prompt_address(task.name, name): prompt.text for name, prompt in sorted(prompts.items())
        },
        "prompts": {
            prompt_address(task.name, name): text_digest(prompt.text)
            for name, prompt in sorted(prompts.items())
        },
    }


def form_facts(config: Config) -> dict[str, bool]:
    """What a record keeps about `standardise=always`: its first requests ask for no form.

    A record without it was made when the schema went with the first request.
    """
    return {"free_first": True} if config.standardise == "always" else {}


def refuse_mixed_forms(old: Mapping[str, Any], new: Mapping[str, Any], run: str) -> None:
    """A run whose first replies were held to a schema is not continued with free ones."""
    if "free_first" in new and "free_first" not in old:
        raise ReplayError(
            f"{run} was begun by a version that sent the schema with the first request, although "
            "standardise is always: the replies to come would be free, and could not be compared "
            "with its own; start a new run"
        )


def metric_facts(metric: Metric) -> dict[str, Any]:
    """A metric as a record keeps it: without the guess at its spread, and without what it does not
    use."""
    facts = {name: value for name, value in asdict(metric).items() if name != "spread"}
    usual = {"round": None, "judged": False, "digits": 2}
    return {
        name: value for name, value in facts.items() if name not in usual or value != usual[name]
    }


def is_same_rule(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether two records have the same rule: bots of the task's file may differ, since they are
    participants and no part of the rule."""
    alone = old.get("rule_without_bots")
    return bool(
        old["rule"] == new["rule"] or (alone is not None and alone == new.get("rule_without_bots"))
    )


def changed_bots(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The caution for a run that goes on although bots of its task's file have changed."""
    if not old["rule"] or old["rule"] == new["rule"] or not is_same_rule(old, new):
        return []
    return [
        f"bots of {old['task']} have changed since this run began, its rule has not: replies on "
        "record stay as they are, those to come are of the changed bots"
    ]


def refuse_changes(old: Mapping[str, Any], new: Mapping[str, Any], run: str) -> None:
    """A record is only continued under the rule and prompts that it was begun with."""
    changed = (
        [f"task {old['task']} (version {old['version']}, now {new['version']})"]
        if old["version"] != new["version"]
        else []
    )
    then, now = old["prompts"], new["prompts"]
    then_on, now_on = old.get("basis", {}), new.get("basis", {})
    changed += [
        f"{name} ({then_on.get(name)}, now {now_on.get(name)})"
        for name in now_on
        if then_on.get(name) != now_on[name]
    ]
    changed += [
        f"prompt {address}"
        for address in sorted({*then, *now})
        if then.get(address) != now.get(address)
    ]
    if not changed and old["rule"] and not is_comparable(old["rule"], new["rule"]):
        raise ReplayError(
            f"{run} was begun by Parley {old['parley']}, "
            f"which recorded the rule of {old['task']} in another way: "
            "it cannot be checked that the rule is the same; finish it with that version, "
            "or start a new run"
        )
    if not changed and old["rule"] and not is_same_rule(old, new):
        changed = [f"rule of {old['task']}"]
    for fact in ("works", "retrievers"):
        then, now = old.get(fact, {}), new.get(fact, {})
        changed += [
            f"{name} ({then[name]}, now {now.get(name)})"
            for name in then
            if then[name] != now.get(name)
        ]
    if changed:
        raise ReplayError(
            f"{run} was begun under another {', '.join(changed)}: undo the change, "
            "or start a new run (what was played stays in its file)"
        )


def refuse_other(old: Config, new: Config, run: str) -> None:
    """A run is only continued under the configuration that it was begun with."""
    before, after = asdict(old), asdict(new)
    for facts in (before, after):
        facts["models"] = {
            alias: {key: value for key, value in model.items() if key not in MAY_MOVE}
            for alias, model in facts["models"].items()
        }
    changed = [key for key in before if before[key] != after[key] and key not in MAY_CHANGE]
    if changed:
        said = "; ".join(f"{key} was {before[key]!r}, is now {after[key]!r}" for key in changed)
        raise ReplayError(f"{run} was begun under another configuration: {said}")


def refuse_secrets(config: Config) -> None:
    """A configuration that is kept holds no secret."""
    text = config.encoded()
    for secret in secrets_in_environment():
        if secret.encode() in text:
            raise UsageError(
                "the configuration holds the value of a secret: "
                "write ${NAME} where NAME is its variable"
            )
