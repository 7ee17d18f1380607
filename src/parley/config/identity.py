"""What a record depends on besides its configuration: the rule, the prompts and the program."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from parley import __version__
from parley.config.rule_digest import digest_without_bots, rule_digest
from parley.errors import ReplayError, UsageError
from parley.masking.spans import Roster
from parley.match.task_errors import errors_of_task
from parley.participants._registry import participant_kinds
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
    """What a record depends on besides the configuration: the rule, the prompts and the program.

    It includes roles and metrics, so that results can be computed from the file alone.
    """
    with errors_of_task(task, "score_basis"):
        basis = dict(task.score_basis())
    return {
        "parley": __version__,
        "python": platform.python_version(),
        "json_repair": version("json-repair"),
        "task": task.name,
        "version": task.version,
        **({"runs_code": True} if task.runs_code else {}),
        "rule": rule_digest(type(task)),
        # only if a file of the user's has bots, which may be fixed while a run is stopped
        **({"rule_without_bots": alone} if (alone := digest_without_bots(type(task))) else {}),
        "roles": {
            name: "instrument" if role.instrument else "contestant"
            for name, role in task.roles.items()
        },
        "seats": dict(seats),
        "metrics": [metric_facts(metric) for metric in task.metrics(seats)],
        **({"basis": basis} if basis else {}),
        "items": items_digest(items),
        "texts": {
            prompt_address(task.name, name): prompt.text for name, prompt in sorted(prompts.items())
        },
        "prompts": {
            prompt_address(task.name, name): text_digest(prompt.text)
            for name, prompt in sorted(prompts.items())
        },
    }


def roster_of(config: Config) -> Roster:
    """Who plays in a run. Bots, people, scripts and functions are no models."""
    models = (str(options["model"]).partition("/") for options in config.models.values())
    kinds = participant_kinds()
    return Roster.of(name for family, _, name in models if family not in kinds)


def items_digest(items: Sequence[tuple[str, bytes]]) -> str | None:
    """The number and a digest of a run's items; None if it has none."""
    return f"{len(items)}@{text_digest(repr(items))[:8]}" if items else None


def metric_facts(metric: Metric) -> dict[str, Any]:
    """A metric as a record keeps it: without its expected spread, and without defaults."""
    facts = {name: value for name, value in asdict(metric).items() if name != "spread"}
    usual = {"round": None, "judged": False, "digits": 2}
    return {
        name: value for name, value in facts.items() if name not in usual or value != usual[name]
    }


def is_same_rule(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether two records have the same rule. Bots in the task's file may differ, because they are
    participants and not part of the rule."""
    alone = old.get("rule_without_bots")
    return bool(
        old["rule"] == new["rule"] or (alone is not None and alone == new.get("rule_without_bots"))
    )


def changed_bots(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The warning for a resumed run whose bots in the task's file have changed."""
    if not old["rule"] or old["rule"] == new["rule"] or not is_same_rule(old, new):
        return []
    return [
        f"the bots of the task {old['task']} have changed since this run started, but its rule "
        "has not: recorded replies are kept, and new replies come from the changed bots"
    ]


def refuse_changes(old: Mapping[str, Any], new: Mapping[str, Any], run: str) -> None:
    """Refuse to resume a run with another rule or other prompts."""
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
            f"{run} was started with another {', '.join(changed)}: undo the change, or start a "
            "new run. The matches already played stay on record"
        )


def refuse_other(old: Config, new: Config, run: str) -> None:
    """Refuse to resume a run with another configuration."""
    before, after = asdict(old), asdict(new)
    for facts in (before, after):
        facts["models"] = {
            alias: {key: value for key, value in model.items() if key not in MAY_MOVE}
            for alias, model in facts["models"].items()
        }
    changed = [key for key in before if before[key] != after[key] and key not in MAY_CHANGE]
    if changed:
        said = "; ".join(f"{key} was {before[key]!r}, is now {after[key]!r}" for key in changed)
        raise ReplayError(
            f"{run} was started with another configuration ({said}): resume the run with its "
            "old configuration, or start a new run"
        )


def refuse_secrets(config: Config) -> None:
    """Refuse a configuration that contains a secret, because it is stored."""
    text = config.encoded()
    for secret in secrets_in_environment():
        if secret.encode() in text:
            raise UsageError(
                "the configuration contains a secret, such as an API key, in plain text: put "
                "the secret into an environment variable NAME and write ${NAME} instead"
            )
