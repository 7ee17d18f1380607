"""Experiment files, aliases of models, and the one way from a request to a configuration."""

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import fastjsonschema
import pytest
from click.testing import CliRunner

import parley
from parley.cli import command
from parley.config import models_file
from parley.config.experiment import Experiment
from parley.config.experiment_file import read_experiment
from parley.config.trust import Allowed
from parley.errors import UsageError
from parley.store import find_run, read_run
from tests.plans.replays import first_matches

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAD = "kind: experiment\ntask: public_goods\n"
FOUR = """\
models:
  rider: {model: bot/free-rider}
  giver: {model: bot/altruist}
  mirror: {model: bot/reciprocator}
  chance: {model: bot/random}
"""
ASKED = """\
from dataclasses import dataclass
from parley import Choice, Items, Metric, Prompt, Role, Task

@dataclass(frozen=True)
class Word:
    id: str
    word: str

@dataclass(frozen=True)
class Asked(Task):
    size: int

    roles = {"player": Role(), "judges": Role(0, 3, instrument=True)}
    items = Items(Word)

    async def play(self, referee, player, judges):
        asked = referee.render(ASK, word=referee.item.word)
        said = await referee.ask([player], asked, expect=Choice("move", ("a", "b")), default="a")
        if judges:
            await referee.ask(judges, "?", expect=Choice("vote", ("a", "b")), default="a")
        return {player: float(said[player] == "a")}

    def metrics(self, seats):
        return [Metric("right", 0, 1, epsilon=0.1)]

ASK = Prompt("ask", "Say {word}.")
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in, and an environment that names no other."""
    monkeypatch.chdir(tmp_path)
    for name in ("PARLEY_STORE", "PARLEY_MODELS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def wrote(text, name="experiment.yaml"):
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text, encoding="utf-8")
    return name


def ran(*arguments):
    """The exit code of `parley run` in this process, and what it stored."""
    before = set(Path().rglob("*.parley"))
    done = CliRunner().invoke(command, ["run", *arguments], standalone_mode=False)
    if done.exception:
        raise done.exception
    assert done.return_value == 0, done.output
    (path,) = set(Path().rglob("*.parley")) - before
    with read_run(find_run(path)) as reader:
        return reader.info.config, path


def config_of(experiment):
    return experiment.prepare().config


def fault_of(text, **others):
    for name, words in others.items():
        wrote(words, name)
    with pytest.raises(UsageError) as wrong:
        config_of(read_experiment(wrote(text)))
    return str(wrong.value)


# What a file says


def test_a_file_is_played_with_all_that_it_says(here):
    wrote(
        "You are one of {n}. {rounds} rounds, {endowment} coins, times "
        "{multiplier}. Mind the pool.\n",
        "rules.txt",
    )
    text = f"""{HEAD}seed: 7
repeats: 2
plan: together
set: {{rounds: 3, multiplier: 1.5}}
prompts: {{public_goods.rules: rules.txt}}
standardise: always
name: mine
store: kept
concurrency: 2
{FOUR}contestants: [giver, rider]
"""
    config, path = ran(wrote(text))
    assert path.parent == Path("kept")
    assert (config.task, config.seed, config.repeats, config.plan, config.name) == (
        "public_goods",
        7,
        2,
        "together",
        "mine",
    )
    assert config.params == {"rounds": 3, "endowment": 10, "multiplier": 1.5, "feedback": "income"}
    assert config.contestants == ["giver", "rider"]
    assert config.models == {
        "giver": {"model": "bot/altruist"},
        "rider": {"model": "bot/free-rider"},
    }
    assert config.standardise == "always"
    assert config.prompts["public_goods.rules"].endswith("Mind the pool.")


def test_a_file_and_the_same_flags_and_python_give_the_same_configuration(here):
    said = wrote(f"{HEAD}seed: 3\nrepeats: 2\nset: {{rounds: 2}}\n{FOUR}")
    by_file, _ = ran(said)
    models = [
        "rider=bot/free-rider",
        "giver=bot/altruist",
        "mirror=bot/reciprocator",
        "chance=bot/random",
    ]
    flags = [part for model in models for part in ("-m", model)]
    by_flags, _ = ran("public_goods", *flags, "--seed", "3", "--repeats", "2", "--set", "rounds=2")
    result = parley.run(
        "public_goods",
        models=dict(model.split("=") for model in models),
        seed=3,
        repeats=2,
        rounds=2,
    )
    with read_run(result.ref) as reader:
        assert by_file == by_flags == reader.info.config


def test_flags_override_the_file(here):
    text = (
        f"{HEAD}seed: 7\nrepeats: 9\nplan: round_robin\nname: a\nconcurrency: 1\n"
        f"set: {{rounds: 9, multiplier: 2}}\n{FOUR}"
    )
    flags = (
        "--seed 0 --repeats 1 --plan together --set rounds=1 --name b --store other "
        "--concurrency 4 --standardise on_error"
    )
    config, path = ran(
        wrote(text),
        *flags.split(),
        "-m",
        "rider",
        "-m",
        "new=bot/random",
        "-m",
        "giver=bot/gradual",
    )
    assert path.parent == Path("other")
    assert (config.seed, config.repeats, config.plan, config.name) == (0, 1, "together", "b")
    assert (config.params["rounds"], config.params["multiplier"]) == (1, 2.0)
    assert config.contestants == ["rider", "new", "giver"]
    assert config.models["giver"] == {"model": "bot/gradual"}
    assert set(config.models) == {"rider", "new", "giver"}


def test_options_of_models_are_added_and_a_model_named_again_keeps_its_own(here):
    text = (
        f"{HEAD}models:\n  a: {{model: vllm/x, base_url: 'http://localhost:1/v1', temperature: "
        f"0}}\n  b: {{model: bot/random}}\n"
    )
    experiment = read_experiment(wrote(text))
    assert experiment.add_model("a=vllm/x") == "a"
    assert experiment.models["a"] == {
        "model": "vllm/x",
        "base_url": "http://localhost:1/v1",
        "temperature": 0,
    }
    config, _ = ran(wrote(text), "-M", "a.concurrency=3", "-m", "a=bot/random", "-m", "b")
    assert config.models == {
        "a": {"model": "bot/random", "concurrency": "3"},
        "b": {"model": "bot/random"},
    }
    with pytest.raises(UsageError, match=r"unknown model in -M: 'aa'; did you mean 'a'\?"):
        ran(wrote(text), "-M", "aa.temperature=3")
    with pytest.raises(UsageError, match="use -m a=bot/random"):
        ran(wrote(text), "-M", "a.model=bot/random")


def test_models_that_sit_nowhere_are_not_made(here, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config, _ = ran(
        wrote(
            f"{HEAD}{FOUR}  far: {{model: openai/gpt-4.1}}\ncontestants: [rider, giver]\n"
            f"repeats: 1\n"
        )
    )
    assert "far" not in config.models


def test_a_file_names_the_critic_of_a_run_that_evolves(here):
    text = """kind: experiment
task: qa
dataset: samples
items: 2
models:
  one: {model: bot/student}
  judge: {model: bot/critic, false_yes: 0.3}
instruments: {critic: judge}
evolve: {stages: 1, retriever: bm25, feedback: critic, probe: false}
"""
    config, _ = ran(wrote(text))
    assert (config.contestants, config.instruments) == (["one"], {"critic": ["judge"]})
    with pytest.raises(UsageError, match="add --evolve feedback=critic"):
        config_of(read_experiment(wrote(text.split("evolve:")[0])))


def test_instruments_are_no_contestants_unless_named_and_paths_are_relative_to_the_file(here):
    wrote(ASKED, "there/asked.py")
    wrote('{"word": "one"}\n{"word": "two"}\n{"word": "three"}\n', "there/words.jsonl")
    wrote("Please say {word}, of {size}.", "there/ask.txt")
    wrote('{"move": "a"}\n', "there/says.txt")
    text = """kind: experiment
task: ./asked.py
dataset: words.jsonl
items: 2
set: {size: 1}
models:
  one: {model: bot/random}
  two: {model: scripted/says.txt}
  judge: {model: bot/random}
instruments: {judges: judge}
prompts: {asked.ask: ask.txt}
"""
    file = wrote(text, "there/e.yaml")
    config, _ = ran(file)
    assert config.contestants == ["one", "two"]
    assert config.instruments == {"judges": ["judge"]}
    assert (config.task, config.dataset, config.items) == ("there/asked.py", "there/words.jsonl", 2)
    assert config.models["two"] == {"model": "scripted/there/says.txt"}
    assert config.prompts == {"asked.ask": "Please say {word}, of {size}."}
    config, _ = ran(
        file,
        "--items",
        "1",
        "--role",
        "judges=two",
        "--role",
        "judges=third=bot/random",
        "-m",
        "judge",
    )
    assert (config.contestants, config.instruments, config.items) == (
        ["judge"],
        {"judges": ["two", "third"]},
        1,
    )
    panel = text.replace("judges: judge", "judges: [judge, one]") + "contestants: [one]\n"
    assert config_of(read_experiment(wrote(panel, "there/e.yaml"))).instruments == {
        "judges": ["judge", "one"]
    }


def test_a_checkpoint_beside_a_file_is_found_from_everywhere(here, monkeypatch):
    wrote(
        "a: {model: hf/./mine}\nb: {model: hf/../up}\nc: {model: hf/me/repo}\n"
        "d: {model: hf//abs}\n",
        "there/models.yaml",
    )

    def models():
        return [entry["model"] for entry in models_file.shared_models().values()]

    monkeypatch.setenv("PARLEY_MODELS", "there/models.yaml")
    assert models() == ["hf/./there/mine", "hf/./there/../up", "hf/me/repo", "hf//abs"]
    monkeypatch.setenv("PARLEY_MODELS", str(here / "there" / "models.yaml"))
    assert models() == [f"hf/{here}/there/mine", f"hf/{here}/there/../up", "hf/me/repo", "hf//abs"]
    monkeypatch.delenv("PARLEY_MODELS")
    monkeypatch.chdir(here / "there")
    assert models() == ["hf/./mine", "hf/./../up", "hf/me/repo", "hf//abs"]


def test_references_are_taken_where_they_are_used(here, monkeypatch):
    wrote(ASKED, "asked.py")
    wrote('{"word": "one"}\n', "data/words.jsonl")
    monkeypatch.setenv("DATA", str(here / "data"))
    monkeypatch.setenv("SEED", "12")
    monkeypatch.setenv("SERVED", "http://localhost:9/v1")
    text = """kind: experiment
task: asked.py
dataset: ${DATA}/words.jsonl
seed: ${SEED}
set: {size: "${SEED}"}
models: {a: {model: vllm/x, base_url: "${SERVED}"}}
"""
    allowed = Allowed.of(variables=["DATA", "SEED", "SERVED"])
    prepared = read_experiment(wrote(text), allowed).prepare()
    assert prepared.config.dataset == "${DATA}/words.jsonl"
    assert len(prepared.items) == 1
    assert (prepared.config.seed, prepared.config.params) == (12, {"size": 12})
    assert prepared.config.models["a"]["base_url"] == "${SERVED}"
    monkeypatch.delenv("SEED")
    with pytest.raises(UsageError, match=r"line 4: seed: .{SEED}: the variable SEED is not set"):
        read_experiment(wrote(text), allowed)


def test_a_secret_taken_into_a_run_is_refused(here, monkeypatch):
    monkeypatch.setenv("OTHER_API_KEY", "sk-very-secret")
    allowed = Allowed.of(variables=["OTHER_API_KEY"])
    with pytest.raises(UsageError, match="secret") as refused:
        read_experiment(wrote(f"{HEAD}name: ${{OTHER_API_KEY}}\n{FOUR}"), allowed).prepare()
    assert "sk-very" not in str(refused.value)


def test_merged_keys_and_dates_and_keys_that_yaml_would_turn_into_something_else(here):
    text = f"""{HEAD}name: 2026-01-02
models:
  on: &first {{model: bot/random, concurrency: 1}}
  2: {{<<: *first, concurrency: 2}}
"""
    config = config_of(read_experiment(wrote(text)))
    assert config.name == "2026-01-02"
    assert config.models == {
        "on": {"model": "bot/random", "concurrency": 1},
        "2": {"model": "bot/random", "concurrency": 2},
    }


# What may be wrong with it


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["experiment.yaml is empty"]),
        ("# nothing\n", ["experiment.yaml is empty"]),
        ("- a\n", ["line 1", "expected keys with values, found a list"]),
        ("kind: experiment\ntask: [\n", ["line 3", "not readable as YAML"]),
        ("kind: experiment\n\ttask: x\n", ["line 2", "not readable as YAML", "\\t"]),
        ("kind: experiment\nname: \x01\n", ["line 2", "not readable as YAML"]),
        (f"{HEAD}---\na: b\n", ["line 3", "another document"]),
        (f"{HEAD}? [a]\n: b\n", ["line 3", "a key must be a string"]),
        (f"{HEAD}name: !!python/name:os.system\n", ["line 3", "not readable as YAML"]),
        ("task: public_goods\n", ["`kind` is missing", "`kind:` with experiment"]),
        ("kind: experiment\n", ["`task` is missing", "the name of a task"]),
        ("kind: task\n", ["line 1", "`name` is missing", "lowercase letters"]),
        (
            "kind: suite\n",
            ["line 1", "kind", "does not support suites of experiments"],
        ),
        ("kind: [a]\n", ["line 1", "expected `kind: experiment` or `kind: task`, found a list"]),
        (
            f"{HEAD}stop: {{half_width: -3}}\n",
            ["line 3", "stop", "half_width", "expected a number above 0", "found -3"],
        ),
        (
            f"{HEAD}stop: {{halfwidth: 3}}\n",
            ["line 3", "stop", "unknown key 'halfwidth'; did you mean 'half_width'?"],
        ),
        (f"{HEAD}stop: {{top: 2}}\n", ["line 3", "stop", "stop.top only works with `--plan race`"]),
        (
            f"{HEAD}budget: {{usd: much}}\n",
            ["line 3", "budget.usd", "expected a number of USD, 0 or more, found 'much'"],
        ),
        (
            "kind: experiment\ntaks: public_goods\n",
            ["line 2", "unknown key 'taks'; did you mean 'task', which is missing?"],
        ),
        (
            "kind: experiment\ntask: public_gods\n",
            ["line 2", "task", "did you mean 'public_goods'?"],
        ),
        (
            "kind: experiment\ntask: ./nothing.py\n",
            ["line 2", "task", "task file nothing.py does not exist"],
        ),
        (
            f"{HEAD}seed: 1\nname: x\nseed: 2\n",
            ["line 5", "`seed` is given twice (first on line 3)"],
        ),
        (f"{HEAD}seed:\n", ["line 3", "seed", "expected a whole number, found nothing"]),
        (
            f"{HEAD}items: many\n",
            ["line 3", "items", "expected a whole number, 1 or more, found 'many'"],
        ),
        (
            f"{HEAD}repeats: true\n",
            ["line 3", "repeats", "expected a whole number, 1 or more, found True"],
        ),
        (f"{HEAD}concurrency: 0\n", ["line 3", "concurrency", "found 0"]),
        (f"{HEAD}standardise: never\n", ["line 3", "standardise", "expected on_error or always"]),
        (f"{HEAD}plan: togther\n", ["line 3", "plan", "did you mean 'together'?"]),
        (f"{HEAD}set:\n  ronds: 3\n", ["line 4", "set.ronds", "did you mean 'rounds'?"]),
        (f"{HEAD}set:\n  rounds: x\n", ["line 4", "set.rounds", "must be a whole number, not 'x'"]),
        (f"{HEAD}set:\n  rounds: 0\n", ["line 3", "set", "`rounds` must be at least 1"]),
        (
            f"{HEAD}set: 3\n",
            ["line 3", "set", "expected parameters of the task, as key: value, found 3"],
        ),
        (
            f"{HEAD}models:\n  gpt-4.1: {{temperature: 0}}\n",
            ["line 4", "models.gpt-4.1: the key `model` is missing", "PROVIDER/NAME"],
        ),
        (
            f"{HEAD}models:\n  gpt-4.1: 7\n",
            ["line 4", "models.gpt-4.1", "found 7"],
        ),
        (
            f"{HEAD}models:\n  a:\n    model: bott/x\n",
            ["line 5", "models.a.model", "did you mean 'bot'?"],
        ),
        (
            f"{HEAD}models:\n  a:\n    model: random\n",
            ["line 5", "models.a.model", "PROVIDER/NAME"],
        ),
        (
            f"{HEAD}models:\n  a:\n    model: bot/x\n    t: {{u: 1}}\n",
            ["line 6", "models.a.t", "found a mapping"],
        ),
        (
            f"{HEAD}models:\n  a:\n    model: bot/x\n    model: bot/y\n",
            ["line 6", "`models.a.model` is given twice"],
        ),
        (
            f"{HEAD}models: {{a/b: {{model: bot/x}}}}\n",
            ["line 3", "models", "aliases of letters", "a/b"],
        ),
        (f"{HEAD}models: &m {{a: {{model: bot/x, t: *m}}}}\n", ["line 3", "refers to itself"]),
        (
            f"{HEAD}{FOUR}contestants:\n  - rider\n  - giber\n",
            ["line 10", "contestants[1]", "did you mean 'giver'?", "models.yaml"],
        ),
        (
            f"{HEAD}{FOUR}contestants: rider\n",
            ["line 8", "contestants", "expected a list of aliases, found 'rider'"],
        ),
        (
            f"{HEAD}{FOUR}contestants: [rider, 7]\n",
            ["line 8", "contestants[1]", "expected an alias, or [ALIAS=]PROVIDER/NAME, found 7"],
        ),
        (f"{HEAD}{FOUR}contestants: [rider, rider]\n", ["two models are called 'rider'"]),
        (
            f"{HEAD}{FOUR}instruments: {{judge: rider}}\n",
            ["line 8", "instruments.judge", "unknown instrument role"],
        ),
        (
            f"{HEAD}prompts: {{public_goods.ruls: x}}\n",
            ["line 3", "prompts.public_goods.ruls", "cannot be read"],
        ),
        (
            f"{HEAD}# {{endowmnt}}\nprompts: {{public_goods.rules: experiment.yaml}}\n",
            ["line 4", "public_goods.rules", "'endowmnt'; did you mean 'endowment'?"],
        ),
        (
            f"{HEAD}prompts:\n  public_goods.ruls: experiment.yaml\n",
            ["line 4", "did you mean 'public_goods.rules'?"],
        ),
        (f"{HEAD}{FOUR}seed: 99999999999999999999999\n", ["cannot be stored"]),
    ],
)
def test_a_fault_names_file_line_key_and_what_was_expected(here, text, parts):
    said = fault_of(text)
    assert said.startswith("experiment.yaml") or "called" in said or "stored" in said
    for part in parts:
        assert part in said


def test_a_file_that_cannot_be_read_is_named(here):
    Path("folder.yaml").mkdir()
    Path("bytes.yml").write_bytes(b"\xff\xfe\xff")
    for name in ("missing.yaml", "folder.yaml", "bytes.yml"):
        with pytest.raises(UsageError, match=f"{name} cannot be read"):
            ran(name)


def test_the_command_says_a_fault_in_one_line_and_exits_with_2(here):
    wrote(f"{HEAD}sed: 3\n")
    done = subprocess.run(
        [sys.executable, "-m", "parley", "run", "experiment.yaml"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "parley: experiment.yaml, line 3: sed: unknown key 'sed'; did you mean"
    )
    assert done.stderr.count("\n") == 1


# Aliases for all runs


@pytest.mark.parametrize("form", ["{}", "models:\n{}"])
def test_aliases_come_from_models_yaml_in_both_forms(here, form):
    entries = "  strong: {model: bot/random, concurrency: 2}\n  calm: {model: bot/null}\n"
    wrote(form.format(entries), "models.yaml")
    config, _ = ran(
        "public_goods",
        "-m",
        "strong",
        "-m",
        "x=strong",
        "-m",
        "bot/altruist",
        "-M",
        "x.concurrency=5",
    )
    assert config.contestants == ["strong", "x", "altruist"]
    assert config.models["strong"] == {"model": "bot/random", "concurrency": 2}
    assert config.models["x"] == {"model": "bot/random", "concurrency": "5"}
    assert "calm" not in config.models


def test_an_experiment_may_seat_aliases_for_all_runs_and_its_own_come_first(here, monkeypatch):
    wrote("rider: {model: bot/random}\nshared: {model: bot/null}\n", "sub/aliases.yaml")
    monkeypatch.setenv("PARLEY_MODELS", "sub/aliases.yaml")
    config = config_of(read_experiment(wrote(f"{HEAD}{FOUR}contestants: [rider, shared]\n")))
    assert config.models == {"rider": {"model": "bot/free-rider"}, "shared": {"model": "bot/null"}}
    assert config_of(read_experiment(wrote(f"{HEAD}{FOUR}"))).contestants == [
        "rider",
        "giver",
        "mirror",
        "chance",
    ]


def test_an_unknown_alias_says_where_it_looked(here, monkeypatch):
    with pytest.raises(
        UsageError,
        match=r"unknown alias 'random'.*models\.yaml \(not found\).*like bot/random",
    ):
        ran("public_goods", "-m", "random")
    wrote("strong: {model: bot/random}\n", "models.yaml")
    with pytest.raises(
        UsageError,
        match=r"unknown alias 'stron'; did you mean 'strong'\?.*looked for aliases in models\.yaml",
    ):
        ran("public_goods", "-m", "a=stron")
    with pytest.raises(
        UsageError, match=r"looked for aliases in experiment\.yaml and models\.yaml"
    ):
        ran(wrote(f"{HEAD}{FOUR}"), "-m", "nobody")
    monkeypatch.setenv("PARLEY_MODELS", "elsewhere.yaml")
    with pytest.raises(UsageError, match=r"elsewhere\.yaml cannot be read"):
        ran("public_goods", "-m", "strong")


def test_faults_in_models_yaml_have_lines_and_matter_only_when_it_is_read(here):
    wrote("ok: {model: bot/random}\nbad: {temperature: 0}\n", "models.yaml")
    ran("public_goods", "-m", "bot/random", "-m", "bot/null", "--repeats", "1")
    with pytest.raises(UsageError, match=r"models\.yaml, line 2: bad: the key `model` is missing"):
        ran("public_goods", "-m", "ok")
    wrote("models:\n  a: {model: bot/random}\nother: {model: bot/null}\n", "models.yaml")
    with pytest.raises(UsageError, match=r"models\.yaml, line 3: other: unknown key 'other'"):
        models_file.shared_models()
    wrote("models: {model: bot/random}\n", "models.yaml")
    assert models_file.shared_models() == {"models": {"model": "bot/random"}}


def test_parley_models_lists_aliases(here):
    wrote("strong: {model: bot/random, concurrency: 2}\n", "models.yaml")
    told = CliRunner().invoke(command, ["models"])
    assert "aliases in models.yaml:" in told.stdout
    assert "bot/random (concurrency 2)" in told.stdout
    facts = json.loads(CliRunner().invoke(command, ["models", "--json"]).stdout)
    assert facts["aliases"] == {"strong": {"model": "bot/random", "concurrency": 2}}


# The Python door


def test_python_plays_a_file_and_overrides_it(here):
    wrote("strong: {model: bot/random}\n", "models.yaml")
    file = wrote(f"{HEAD}seed: 7\nrepeats: 3\nset: {{rounds: 2}}\n{FOUR}")
    result = parley.run(file)
    assert (result.data["run"]["seed"], result.data["run"]["matches"]["done"]) == (7, 3)
    again = parley.run(
        Path(file), ["rider", "strong", {"model": "giver"}], seed=0, repeats=1, rounds=4
    )
    assert again.data["run"]["seed"] == 0
    assert again.data["run"]["params"]["rounds"] == 4
    assert sorted({row["alias"] for row in again.data["results"]}) == ["giver", "rider", "strong"]


def test_python_takes_models_in_every_form(here):
    def mine(view):
        return '{"coins": 1}'

    models = {"a": "bot/random", "b": {"model": "bot/random", "concurrency": 1}, "c": mine}
    result = parley.run("public_goods", models, repeats=1)
    assert sorted({row["alias"] for row in result.data["results"]}) == ["a", "b", "c"]
    with pytest.raises(UsageError, match="a model must be a name, a function or"):
        parley.run("public_goods", [3])
    with pytest.raises(UsageError, match="two models are called 'random'"):
        parley.run("public_goods", ["bot/random", "bot/random"])
    with pytest.raises(UsageError, match="two models are called '<lambda>'"):
        parley.run("public_goods", [lambda view: "1", lambda view: "2"])
    with pytest.raises(UsageError, match=r"no models"):
        parley.run("public_goods")
    with pytest.raises(UsageError, match="standardise must be on_error or always, not 'nie'"):
        parley.run("public_goods", ["bot/random", "bot/null"], standardise="nie")


def test_one_alias_for_two_models_is_refused(here):
    with pytest.raises(UsageError, match="two models are called 'a'"):
        ran("public_goods", "-m", "a=bot/random", "-m", "a=bot/null")
    with pytest.raises(UsageError, match="an alias may contain only letters"):
        ran("public_goods", "-m", "a b=bot/random")
    experiment = Experiment("public_goods")
    assert experiment.add_model("bot/random", "any name") == "any name"
    assert [experiment.add_model("bot/random"), experiment.add_model("random=bot/random")] == [
        "random",
        "random",
    ]


# What is published


def test_the_schema_is_one_and_the_examples_keep_to_it(here):
    import yaml

    schema = json.loads(
        files("parley.config").joinpath("experiment.schema.json").read_text(encoding="utf-8")
    )
    check = fastjsonschema.compile(schema)
    define = fastjsonschema.compile(
        json.loads(files("parley.config").joinpath("task.schema.json").read_text(encoding="utf-8"))
    )
    found = sorted(EXAMPLES.glob("*.yaml"))
    assert found
    for path in found:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        if data["kind"] == "task":
            define(data)
        else:
            check(data)
            assert config_of(read_experiment(str(path))).contestants


@pytest.mark.parametrize(
    ("file", "flags", "found"),
    [
        ("public_goods.yaml", ("--repeats", "2"), ("five strategies", 7, 5)),
        ("idiom_solitaire.yaml", ("--repeats", "2"), ("well read", 5, 3)),
        ("translation.yaml", ("--items", "2"), ("two languages", 5, 3)),
    ],
)
def test_the_examples_run(here, file, flags, found):
    config, _ = ran(str(EXAMPLES / file), *flags)
    assert (config.name, config.seed, len(config.contestants)) == found


def test_what_reads_files_or_calls_endpoints_is_imported_late():
    code = (
        "import sys, parley.cli.run, parley.api; early = {'aiohttp'} & set(sys.modules); "
        "import parley.cli.models; print(early | {'yaml', 'fastjsonschema'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_bomb_of_merges_is_refused(tmp_path):
    lines = ["a0: &a0 {model: bot/random}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 12)]
    (tmp_path / "bomb.yaml").write_text("\n".join(lines))
    with pytest.raises(UsageError, match="more than 100,000 values"):
        read_experiment(str(tmp_path / "bomb.yaml"))


def test_an_adversary_is_named_by_a_file_or_a_flag_and_is_no_contestant(here):
    models = (
        "models: {a: {model: bot/guesser}, b: {model: bot/guesser, strength: 0.9}, x: "
        "{model: bot/guesser}}"
    )
    text = f"kind: experiment\ntask: word_guessing\nitems: 2\n{models}\nset: {{rounds: 1}}\n"
    prepared = read_experiment(wrote(text + "adversary: x\n")).prepare()
    assert (prepared.config.plan, prepared.config.adversary, prepared.config.repeats) == (
        "versus",
        "x",
        3,
    )
    assert prepared.config.contestants == ["a", "b"]
    specs = first_matches(prepared.plan)
    assert len(specs) == 2 * 3 * 4
    assert all(set(spec.seats.values()) in ({"a", "x"}, {"b", "x"}) for spec in specs)
    assert all([spec.seats[seat] for seat in spec.unscored] == ["x"] for spec in specs)
    config, path = ran(wrote(text), "--adversary", "x", "--repeats", "1")
    assert (config.plan, config.adversary, config.contestants) == ("versus", "x", ["a", "b"])
    assert {row["alias"] for row in parley.Result(path).data["results"]} == {"a", "b"}
    assert "z" in fault_of(text + "adversary: z\n")


@pytest.mark.parametrize("alias", ["a\nb", "a\x1b[31m", "a\u202eb", "a\tb", " "])
def test_an_alias_from_python_must_be_visible(alias):
    with pytest.raises(UsageError, match="an alias must have visible characters on one line"):
        Experiment("public_goods").add_model("bot/random", alias)
