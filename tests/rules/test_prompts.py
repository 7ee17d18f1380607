"""Prompts that a configuration replaces: what is refused, what is told, what changes nothing; and
what they are said to mean."""

from dataclasses import fields
from pathlib import Path

import pytest

import parley
from parley import Paragraph, Problem, Prompt, UsageError
from parley.cli.tasks import describe_task, parameter_meanings
from parley.config.experiment import Experiment
from parley.config.prompt_overrides import chosen_prompts, unused_prompts
from parley.config.task_catalogue import task_class, task_names
from parley.datasets.dictionaries import Lexicon
from parley.participants._registry import make_participant
from parley.rules.prompts import COMMON
from parley.tasks.public_goods import PublicGoods
from parley.testing import play
from tests.cli.test_cli import parley as command

POEM = str(Path(__file__).parents[2] / "examples" / "poem.yaml")
WORDS = ["海阔天空", "空前绝后", "后发制人", "人定胜天", "天下无敌", "天外有天", "空空如也"]
ADD = Problem(
    "add",
    "Add.",
    ("assert add(1, 2) == 3",),
    signature="def add(a, b)",
    names=("add",),
    reference="def add(a, b): ...",
)
TEXT = Paragraph("one", "Good day. It rains.", "Guten Tag. Es regnet.", "en", "de")


def prepared(task, prompts, **params):
    found = Experiment(task, params)
    found.models = {"a": {"model": "bot/random"}, "b": {"model": "bot/random"}}
    found.prompts = prompts
    return found.prepare()


def test_a_variable_that_is_left_out_is_told_and_no_error():
    ready = prepared("public_goods", {"public_goods.turn": "Round {number}: how many?"})
    assert (
        "your replacement for the prompt `public_goods.turn` does not contain {endowment}, "
        "{rounds}, which the original prompt contains" in ready.cautions
    )
    assert not [caution for caution in prepared("public_goods", {}).cautions if "prompt" in caution]


def test_a_misspelt_variable_is_named_before_anything_else_with_the_nearest_one():
    with pytest.raises(
        UsageError,
        match=(
            r"^unknown variable in your text for prompt 'turn': 'numbr'; "
            r"did you mean 'number'"
        ),
    ):
        chosen_prompts(PublicGoods, {"public_goods.turn": "Round {numbr}: how many?"})


def test_parameters_may_be_used_anywhere():
    ready = prepared("public_goods", {"public_goods.news": "{news} coins, {multiplier} times"})
    assert ready.prompts["news"].variables == ["multiplier", "news"]
    assert not [caution for caution in ready.cautions if "prompt" in caution]


@pytest.mark.parametrize(
    ("task", "address", "params"),
    [
        ("public_goods", "public_goods.rules_open", {}),
        ("public_goods", "public_goods.rules", {"feedback": "investments"}),
        ("public_goods", "public_goods.form", {}),
    ],
)
def test_a_prompt_that_nobody_hears_is_told_and_changes_nothing(task, address, params):
    plain, other = prepared(task, {}, **params), prepared(task, {address: "Other words."}, **params)
    told = (
        f"you replaced the prompt `{address}`, but this configuration never uses it, so "
        f"the replacement has no effect"
    )
    assert told in other.cautions
    assert other.identity["prompts"] == plain.identity["prompts"]
    assert other.identity["texts"] == plain.identity["texts"]
    assert (
        prepared(task, {"public_goods.turn": "How many?"}).identity["prompts"]
        != plain.identity["prompts"]
    )


def test_the_signature_does_not_change_with_words_of_another_language(tmp_path):
    (tmp_path / "own.txt").write_text("\n".join(WORDS), encoding="utf-8")
    common = {
        "dictionary": [str(tmp_path / "own.txt")],
        "traditional": False,
        "common": 0,
        "repeats": 1,
        "store": tmp_path,
    }

    def signature(**prompts):
        words = {f"idiom_solitaire.{name}": text for name, text in prompts.items()}
        models = {"a": "bot/speaker", "b": "bot/speaker"}
        return parley.run("idiom_solitaire", models, prompts=words, **common).data["results"][0][
            "signature"
        ]

    plain = signature()
    assert signature(turn_en="Go on: {chain}", again="What? {fault} {hint}") == plain
    assert signature(turn_zh="{chain} ……") != plain


PLAYED = {
    "income": ("public_goods", {}, ["gradual", "altruist"], set()),
    "investments": ("public_goods", {"feedback": "investments"}, ["gradual", "altruist"], set()),
    "chinese": ("idiom_solitaire", {"common": 0}, ["speaker", "null"], set()),
    "english, checked": (
        "idiom_solitaire",
        {"common": 0, "language": "en"},
        ["speaker", "speaker", "random"],
        set(),
    ),
    "one version": ("code_review", {"rounds": 1}, ["coder", "coder"], {"script"}),
    "versions": ("code_review", {"tell_signature": False}, ["coder", "coder", "judge"], {"script"}),
    "one pass": ("translation", {"pair": "en-de"}, ["translator", "translator"], set()),
    "passes": (
        "translation",
        {"pair": "en-de", "rounds": 3},
        ["translator", "translator", "judge"],
        set(),
    ),
}


@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize("name", PLAYED)
def test_what_a_task_says_to_be_unsaid_is_never_heard_and_all_else_is(monkeypatch, name, always):
    reference, params, bots, by_item = PLAYED[name]
    kind = task_class(reference)
    heard, render = set(), Prompt.render
    monkeypatch.setattr(
        Prompt, "render", lambda self, values: (heard.add(self.name), render(self, values))[1]
    )
    task, item = kind.from_params(params), {"code_review": ADD, "translation": TEXT}.get(reference)
    seats = [
        seat
        for name, role in kind.roles.items()
        for seat in role.seats(name, max(1, role.min_seats))
    ][: len(bots)]
    words = {"dictionary": Lexicon.of("own", dict.fromkeys(WORDS, 1))}

    async def execute(program):
        return {"passed": False, "faults": [], "end": "", "guarantee": "values"}

    for seed in range(12):
        cast = {
            seat: make_participant(
                f"bot/{bot}", {"strength": 0.7} if bot == "speaker" else {}, kind, bot
            )
            for seat, bot in zip(seats, bots, strict=True)
        }
        how = "always" if always else "on_error"
        play(task, cast, seed=seed, item=item, works=words, execute=execute, standardise=how)
    table = {name: sum(seat.role == name for seat in seats) for name in kind.roles}
    unused = unused_prompts(task, table, how)
    assert not heard & unused
    assert heard >= kind.prompts().keys() - unused - by_item - COMMON.keys() - {
        "again_zh",
        "again_en",
        "check_en",
    }


@pytest.mark.parametrize("name", [*task_names(), POEM])
def test_every_parameter_and_variable_of_a_bundled_task_is_explained(name):
    task = task_class(name)
    wanted = {each.name for each in fields(task)} | {
        each for prompt in task.prompts().values() for each in prompt.variables
    }
    known = parameter_meanings(task)
    assert not [each for each in wanted if not known.get(each)]
    assert name == POEM or not task.meanings().keys() - wanted


def test_tasks_tells_what_everything_means(tmp_path):
    said = command("tasks", "code_review", cwd=tmp_path).out
    for line in (
        "role programmer: 1 seat\n",
        "role judge: 0 to 9 seats, unranked, optional\n",
        "--set rounds=…  (int, default 3): number of versions of the program, each with a review\n",
        "metric pass of programmer: 0 to 1",
        "(-M ALIAS.strength=0.5, -M ALIAS.review=0.5)\n",
        "    {conversation}: everything both roles said, quoted\n",
        "prompt code_review.judge (not used by default):",
    ):
        assert line in said
    facts = describe_task(task_class("code_review"))
    assert facts["prompts"]["code_review.revise"] == ["said"]
    assert facts["bot_options"]["bot/coder"] == {"strength": 0.5, "review": 0.5}
    assert "code_review.judge" in facts["unsaid"]
