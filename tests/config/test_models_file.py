"""Models under names of one's own: defaults for all, aliases of aliases, prices of copies."""

import pytest
from click.testing import CliRunner

import parley as library
from parley import UsageError
from parley.cli.models import command
from parley.config.experiment import Experiment
from parley.config.experiment_file import read_experiment
from parley.config.models_file import default_options, shared_models
from parley.config.prices import prices_for

MODELS = """
defaults: {temperature: 0.5, rpm: 60, strength: 1}
strong: {model: openai/gpt-4.1, max_tokens: 100, temperature: 0}
local: {model: vllm/qwen, base_url: "http://localhost:8000/v1"}
rider: {model: bot/free-rider}
"""
PRICES = "strong: {input: 1, output: 2}\nlocal: {input: 3, output: 4}\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.yaml").write_text(MODELS.replace(", strength: 1", ""))
    (tmp_path / "prices.yaml").write_text(PRICES)
    return tmp_path


def config_of(*models, task="public_goods"):
    experiment = Experiment(task)
    for model in models:
        experiment.add_model(model)
    return experiment.config(experiment.configured_task())


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{model: bot/altruits}", r"line 2: a.model: unknown bot for public_goods: 'altruits'"),
        ("\n  model: bot/altruist\n  temprature: 1", r"line 4: a.temprature: unknown option of"),
        ('\n  model: vllm/q\n  base_ur: "http://localhost"', "line 4: a.base_ur: unknown option"),
        ("\n  model: vllm/q\n  rpm: 0", r"line 4: a.rpm: a.rpm must be at least 1"),
        (
            "\n  model: vllm/q\n  api_key: x",
            r"line 4: a.api_key: a.api_key cannot be set, because Parley reads API keys",
        ),
    ],
)
def test_a_fault_of_a_model_has_its_file_line_and_key(here, monkeypatch, entry, said, trusted):
    (here / "m.yaml" if trusted else here / "models.yaml").write_text(f"b: bot/null\na: {entry}\n")
    if trusted:
        monkeypatch.setenv("PARLEY_MODELS", "m.yaml")
    experiment = Experiment("public_goods")
    experiment.contestants = [experiment.add_model(name) for name in ("a", "b")]
    with pytest.raises(UsageError, match=rf"^m(odels)?\.yaml, {said}"):
        experiment.prepare()


def test_a_fault_of_a_model_in_an_experiment_has_its_line(here):
    words = "kind: experiment\ntask: public_goods\n"
    path = here / "e.yaml"
    path.write_text(f"{words}models:\n  a: bot/null\n  b: bot/altruits\n")
    with pytest.raises(UsageError, match=r"e.yaml, line 5: models.b.model: unknown bot for"):
        read_experiment(str(path)).prepare()
    path.write_text(f"{words}contestants:\n  - bot/null\n  - bot/altruits\n")
    with pytest.raises(UsageError, match=r"e.yaml, line 5: contestants\[1\]: unknown bot for"):
        read_experiment(str(path)).prepare()
    path.write_text(f"{words}contestants: [bot/null, 'python/os:system']\n")
    with pytest.raises(
        UsageError, match=r"e.yaml, line 3: contestants\[1\]: the Python module os is"
    ):
        read_experiment(str(path)).prepare()


def test_a_typed_option_is_no_fault_of_a_file(here):
    experiment = Experiment("public_goods")
    experiment.contestants = [experiment.add_model("rider", options={"temprature": 1})]
    experiment.contestants.append(experiment.add_model("bot/null"))
    with pytest.raises(UsageError, match=r"^unknown option of bot/free-rider: 'temprature'"):
        experiment.prepare()


def test_models_shows_what_defaults_add(here):
    out = CliRunner().invoke(command, ["strong", "rider"]).output
    assert (
        "openai/gpt-4.1 (max_tokens 100, temperature 0, rpm 60 from `defaults` in models.yaml)"
        in out
    )
    assert "bot/free-rider: free" in out


def test_defaults_hold_for_every_model_that_takes_them(here):
    config = config_of("strong", "b=vllm/other", "rider", "bot/altruist")
    assert config.models == {
        "strong": {"model": "openai/gpt-4.1", "max_tokens": 100, "temperature": 0, "rpm": 60},
        "b": {"model": "vllm/other", "temperature": 0.5, "rpm": 60},
        "rider": {"model": "bot/free-rider"},
        "altruist": {"model": "bot/altruist"},
    }
    assert "defaults" not in shared_models()


def test_a_default_that_no_model_takes_is_refused_with_its_line(here):
    (here / "models.yaml").write_text("defaults: {temprature: 1}\na: {model: bot/null}\n")
    with pytest.raises(UsageError, match=r"line 1: defaults.temprature: .*did you mean 'temperat"):
        default_options()
    (here / "models.yaml").write_text("defaults: 3\na: {model: bot/null}\n")
    with pytest.raises(
        UsageError,
        match="`defaults` needs options for all models, written as `OPTION: VALUE`; found 3",
    ):
        default_options()
    (here / "models.yaml").write_text("models: {a: {model: bot/null}}\ndefaults: {rpm: 3}\n")
    assert default_options() == {"rpm": 3}


def test_the_copy_of_an_alias_keeps_its_price(here, monkeypatch):
    monkeypatch.setenv("VLLM_BASE_URL", "http://localhost:1/v1")
    config = config_of("strong", "copy=strong", "moved=local", "other=vllm/qwen")
    prices = prices_for(config.models)
    assert [prices.of(alias).rates[0].input for alias in ("strong", "copy", "moved")] == [1, 1, 3]
    assert prices.of("other") is None  # the same name at another address is another service


def experiment(here, text):
    (here / "e.yaml").write_text(f"kind: experiment\ntask: public_goods\n{text}")
    return read_experiment("e.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "models: [strong, rider]\n",
        "models: {strong: strong, rider: bot/free-rider}\n",
        "models: {strong: {model: strong}, rider: {model: rider}}\n",
        "contestants: [strong, rider]\n",
        "contestants: [strong, rider=bot/free-rider]\n",
    ],
)
def test_models_and_contestants_both_take_aliases(here, text):
    found = experiment(here, text)
    assert found.cast() == ["strong", "rider"]
    assert found.models == {
        "strong": {"model": "openai/gpt-4.1", "max_tokens": 100, "temperature": 0},
        "rider": {"model": "bot/free-rider"},
    }


def test_an_entry_takes_over_the_options_of_its_alias_and_an_unknown_one_is_named(here):
    found = experiment(here, "models: {warm: {model: strong, temperature: 1}}\n")
    assert found.models["warm"] == {"model": "openai/gpt-4.1", "max_tokens": 100, "temperature": 1}
    with pytest.raises(UsageError, match=r"line 3: models.a.model: .*did you mean 'strong'"):
        experiment(here, "models: {a: {model: stong}}\n")


def test_files_of_another_kind_say_what_they_are(here):
    (here / "models.yaml").write_text("a: {model: bot/null}\n")
    with pytest.raises(UsageError, match="this is a list of models, not an experiment"):
        read_experiment("models.yaml")
    (here / "e.yaml").write_text("kind: experiment\ntask: public_goods\n")
    with pytest.raises(
        UsageError, match="this is an experiment file, not a task file: run it with"
    ):
        library.run(Experiment("e.yaml").configured_task())
    (here / "t.yaml").write_text("kind: task\nname: poem\nmodels: [a]\n")
    with pytest.raises(UsageError, match=r"line 3: models: this key belongs in an experiment"):
        read_experiment("t.yaml")
    (here / "models.yaml").write_text("kind: experiment\ntask: public_goods\n")
    with pytest.raises(
        UsageError, match="expected a list of models, found a file with `kind: experiment`"
    ):
        shared_models()
