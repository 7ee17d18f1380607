"""Run options are declared once: every door has all of them, and nothing else."""

import json
import os
from dataclasses import dataclass, fields
from importlib.resources import files
from inspect import signature
from typing import get_args, get_type_hints

import click
import pytest

from parley.api import run_async
from parley.cli import run
from parley.cli.shared_options import make_flag
from parley.config.experiment_file import generated_schema
from parley.errors import UsageError
from parley.options import (
    OPTIONS,
    RESUMABLE,
    STORED,
    RunOptions,
    check_options,
    declared_options,
    from_flags,
    from_keywords,
    option,
    with_options,
)
from parley.store.config import Config

# Keywords of `parley.run` and flags of `parley run` that are no options.
STRUCTURES = {"task", "models", "roles", "exclude", "dataset", "prompts", "params", "evolve"}
UNSAFE = "unsafe_run_code_without_isolation"  # a way to give `sandbox`


def published():
    return files("parley.config").joinpath("experiment.schema.json")


def inside(schema, place):
    """The schema at a place of an experiment file."""
    for key in place:
        schema = schema["properties"][key]
    return schema


@pytest.mark.parametrize("name", list(OPTIONS))
def test_every_option_has_a_flag_a_key_a_keyword_and_a_stored_name(name):
    each = OPTIONS[name]
    assert each.facts.help.endswith(".")
    (flag,) = [param for param in run.command.params if param.name == name]
    assert flag.opts == [each.flag]
    assert flag.help.startswith(each.facts.help.removesuffix("."))
    assert name in signature(run_async).parameters
    schema = json.loads(published().read_text(encoding="utf-8"))
    if each.facts.not_in_file:
        assert name not in schema["properties"]
    else:
        assert inside(schema, each.place)["description"].startswith(each.facts.help)
    kept = json.loads(Config("t", {}, {}, []).encoded())
    assert (name in kept) == (name in STORED)


def test_no_door_has_anything_else():
    keywords = set(signature(run_async).parameters)
    allowing = {"allow_hosts", "allow_paths", "allow_env"}
    assert keywords == set(OPTIONS) | STRUCTURES | {UNSAFE, "fresh", "progress"} | allowing
    flags = {param.name for param in run.command.params} - {"traceback"}  # every command has it
    assert flags - set(OPTIONS) == STRUCTURES | {
        "model_options", "unsafe", "dry_run", "yes", "form", "as_json", "fresh", "columns",
        "allow_host", "allow_path", "allow_env", "workers",
    }  # fmt: skip
    assert {each.name for each in fields(RunOptions)} == set(OPTIONS)


def test_keywords_have_the_types_of_the_options():
    wanted, found = get_type_hints(RunOptions), get_type_hints(run_async)
    for name in set(OPTIONS) - {
        "items",
        "adversary",
        "store",
    }:  # these may also be given as objects
        own = OPTIONS[name].type
        assert set(get_args(found[name])) == {own, type(None)}, (name, wanted[name])


def test_the_published_schema_is_made_of_the_options():
    """`make schemas` writes it."""
    old = published().read_text(encoding="utf-8")
    new = json.dumps(generated_schema(json.loads(old)), indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("PARLEY_UPDATE"):
        published().write_text(new, encoding="utf-8")
        return
    assert old == new, "make schemas"


def test_a_new_option_is_one_field():
    """A flag, a key of experiment files and a stored value come from its declaration."""

    @dataclass(frozen=True, kw_only=True)
    class More(RunOptions):
        patience: int | None = option(
            None, "Wait for N rounds.", group="limits", minimum=1, yaml=("stop", "patience")
        )

    @dataclass(frozen=True, kw_only=True)
    class MoreKept(Config):
        patience: int | None = option(None, "Wait for N rounds.", group="limits", minimum=1)

    new = declared_options(More)["patience"]

    @click.command()
    @make_flag(new)
    def command(patience):
        return patience

    assert command.main(["--patience", "3"], standalone_mode=False) == 3
    with pytest.raises(click.BadParameter, match="0 is not in the range"):
        command.main(["--patience", "0"], standalone_mode=False)
    schema = with_options(json.loads(published().read_text(encoding="utf-8")), [new])
    assert inside(schema, ("stop", "patience")) == {
        "title": "a whole number, 1 or more",
        "description": "Wait for N rounds.",
        "type": "integer",
        "minimum": 1,
    }
    kept = MoreKept(task="t", params={}, models={}, contestants=[], patience=4)
    assert MoreKept.decoded(kept.encoded()) == kept


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("items", 0, "items must be a whole number, 1 or more, not 0"),
        ("repeats", True, "repeats must be a whole number, 1 or more, not True"),
        ("repeats", 2.5, "repeats must be a whole number, 1 or more, not 2.5"),
        ("seed", "7", "seed must be a whole number, not '7'"),
        ("half_width", 0, "half_width must be a number above 0, not 0"),
        ("half_width", float("nan"), "half_width must be a number above 0, not nan"),
        ("alpha", 1, "alpha must be a number between 0 and 1, not 1"),
        ("budget_usd", float("inf"), "budget_usd must be a number of USD, 0 or more, not inf"),
        ("max_calls", -1, "max_calls must be a whole number, 0 or more, not -1"),
        ("plan", "togther", "did you mean 'together'"),
        ("target", "items", "target must be new_items or these_items, not 'items'"),
        ("until_stable", 1, "until_stable must be true or false, not 1"),
        ("name", 3, "name must be a string, not 3"),
        ("store", "", "store must be a folder or postgresql://…, not ''"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_as_it_was_given(name, value, said):
    with pytest.raises(UsageError, match=said):
        check_options(from_keywords(**{name: value}))
    with pytest.raises(
        UsageError, match=said.replace(f"{name} must", f"{OPTIONS[name].flag} must")
    ):
        check_options(from_flags(**{name: value}))


def test_flags_win_over_what_was_given_before_and_none_is_not_given():
    given = from_keywords(seed=1, repeats=2) | from_flags(seed=3, repeats=None)
    options = check_options(given)
    assert (options.seed, options.repeats, options.name) == (3, 2, "")
    assert given["seed"].said == "--seed"


def test_resume_takes_the_limits_and_nothing_else():
    assert set(RESUMABLE) == {"max_blocks", "budget_usd", "max_calls", "concurrency"}
