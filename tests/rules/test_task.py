"""Tasks are refused when they are made, not in round 3; parameters and prompts are checked at the
start."""

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import parley
from parley import Items, Metric, Prompt, Role, Seat, Task, TaskError, UsageError, WordPair
from parley.config.prompt_overrides import chosen_prompts
from parley.rules.parameters import parse_value
from parley.rules.pool import Pool
from parley.rules.referee import Referee
from parley.tasks.public_goods import PublicGoods
from parley.testing.by_hand import QUOTATION_KEY
from tests import games


@dataclass
class Loose:
    id: str


@pytest.mark.parametrize("name", ["../../x", "a/b", ".hidden", "a\nb", "\x1b[31m", 5])
def test_a_name_that_is_no_part_of_a_file_name_is_refused(name):
    async def play(self, referee, a):
        return {a: 1.0}

    form = {"name": name, "roles": {"a": Role()}, "play": play, "metrics": lambda self, seats: []}
    with pytest.raises(TaskError, match="becomes part of file names"):
        type("Game", (Task,), form)


def test_roles_must_be_the_parameters_of_the_rule():
    with pytest.raises(TaskError, match=r"expected \['a'\], found \['b'\]"):

        class Wrong(games.Game):
            roles = {"a": Role()}

            async def play(self, referee, b): ...


def test_a_rule_must_be_a_coroutine():
    with pytest.raises(TaskError, match="async def"):

        class Wrong(games.Game):
            roles = {"a": Role()}

            def play(self, referee, a): ...


def test_a_task_needs_metrics_and_a_contestant():
    with pytest.raises(TaskError, match="metrics"):

        class NoMetric(Task):
            roles = {"a": Role()}

            async def play(self, referee, a): ...

    with pytest.raises(TaskError, match="contestant"):

        class OnlyJudges(games.Game):
            roles = {"judge": Role(instrument=True)}

            async def play(self, referee, judge): ...


def test_an_item_type_needs_an_id():
    with pytest.raises(TaskError, match="id"):

        class Wrong(games.Game):
            roles = {"a": Role()}
            items = Items(str)

            async def play(self, referee, a): ...


def test_items_are_described_by_items_and_a_stratum_is_one_of_their_fields():
    with pytest.raises(TaskError, match=r"Wrong.items must be `Items\(TYPE\)`, not type"):

        class Wrong(games.Game):
            roles = {"a": Role()}
            items = WordPair

            async def play(self, referee, a): ...

    with pytest.raises(
        TaskError, match="WordPair has no field 'subject'; its fields are: a, b, id"
    ):
        Items(WordPair, stratum="subject")
    with pytest.raises(TypeError):
        Items(WordPair, 3)
    for wrong in (Loose, Loose("1"), WordPair("1", "a", "b"), str):
        with pytest.raises(TaskError, match="expected a frozen dataclass with a field `id`"):
            Items(wrong)


def test_a_task_must_be_frozen():
    @dataclass
    class Loose(games.Game):
        roles = {"a": Role()}

        async def play(self, referee, a): ...

    class Bare(games.Game):
        roles = {"a": Role()}

        async def play(self, referee, a): ...

    for kind in (Loose, Bare):
        with pytest.raises(TaskError, match="frozen dataclass"):
            kind()


@pytest.mark.parametrize(
    "wrong",
    [(0,), (-1,), (3, 2), (0, 0, True), (2, 9, False, 2), (2, 4, False, 0), (2, 2, False, -1)],
)
def test_impossible_roles_are_refused(wrong):
    with pytest.raises(TaskError):
        Role(*wrong)


@pytest.mark.parametrize(
    ("role", "sizes", "said"),
    [
        (Role(), [1], "1"),
        (Role(2), [2], "2"),
        (Role(0, 2, instrument=True), [0, 1, 2], "0 to 2"),
        (Role(2, 10, step=2), [2, 4, 6, 8, 10], "2, 4, 6, 8 or 10"),
        (Role(3, 6, step=3), [3, 6], "3 or 6"),
    ],
)
def test_roles_have_certain_sizes(role, sizes, said):
    assert (list(role.sizes), role.size_text) == (sizes, said)


@pytest.mark.parametrize("picks", [{"topic": "topic"}, {"topics": "subject"}])
def test_items_are_picked_by_a_parameter_and_a_field_that_exist(picks):
    with pytest.raises(TaskError, match=r"picks must map|no field 'subject'"):

        @dataclass(frozen=True)
        class Picky(Task):
            topics: tuple[str, ...] = ()

            roles = {"a": Role()}
            items = Items(WordPair, picks=picks)

            async def play(self, referee, a):
                return {a: 1}

            def metrics(self, seats):
                return [Metric("x", 0, 1, 0.1)]


def test_seats_have_neutral_names_and_keys_that_read_back():
    seats = [Seat("players", 3), Seat("judge"), Seat("team_leads", 1)]
    assert [str(seat) for seat in seats] == ["Player 3", "Judge", "Team lead 1"]
    assert [Seat.of(seat.key) for seat in seats] == seats


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("5", int, 5),
        ("1e-3", float, 0.001),
        (3, float, 3.0),
        ("yes", bool, True),
        ("off", bool, False),
        ("b", Literal["a", "b"], "b"),
        ("2", Literal[1, 2], 2),
        ("none", int | None, None),
        ("7", int | None, 7),
        ("1,2,3", tuple[int, ...], (1, 2, 3)),
        (5, str, "5"),
        ("1", Annotated[float, (0, 1)], 1.0),
        ("none", Annotated[float | None, (0, 1)], None),
        ("5", Annotated[int, "of coins"], 5),
    ],
)
def test_texts_become_what_a_parameter_declares(text, kind, value):
    assert parse_value(text, kind, "x") == value


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("five", int),
        ("1.5", int),
        (1.5, int),
        ("nan", float),
        ("inf", float),
        (True, int),
        ("maybe", bool),
        ("c", Literal["a"]),
        (5, tuple[int, ...]),
        ("1.01", Annotated[float, (0, 1)]),
        (-1, Annotated[int, (0, 1)]),
        ("nan", Annotated[float, (0, 1)]),
    ],
)
def test_what_does_not_fit_says_what_was_wanted(text, kind):
    with pytest.raises(UsageError, match="x"):
        parse_value(text, kind, "x")


def test_an_unknown_parameter_names_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'rounds'"):
        PublicGoods.from_params({"round": 3})


def test_only_identifiers_are_substituted_so_json_survives():
    prompt = Prompt("p", 'Say {"coins": 5, "n": {n}} to {name}; {} { x }')
    assert prompt.variables == ["n", "name"]
    assert (
        prompt.render({"n": 2.50, "name": "all"}) == 'Say {"coins": 5, "n": 2.5} to all; {} { x }'
    )


def test_numbers_that_a_rule_computed_are_rounded_for_seats_and_parameters_are_not():
    task = PublicGoods(multiplier=1.23456)
    pool = Pool([Seat("players", 1), Seat("players", 2)])
    prompt = Prompt("p", "{multiplier}: {news}")
    referee = Referee(task, pool, 1, quotation_key=QUOTATION_KEY)
    assert referee.render(prompt, news=6.708396894) == "1.23456: 6.71"
    assert referee.render(prompt, news=[0.0012345, 10.0, 3]) == "1.23456: [0.00123, 10, 3]"


@given(st.text())
def test_a_prompt_without_variables_is_said_as_it_stands(text):
    prompt = Prompt("p", text)
    if not prompt.variables:
        assert prompt.render({}) == text


def test_every_prompt_has_an_address():
    assert set(chosen_prompts(PublicGoods, {})) >= {
        "rules",
        "rules_open",
        "turn",
        "news",
        "news_open",
        "again",
    }


def test_a_replaced_prompt_has_no_other_variables_than_its_own_and_parameters():
    used = chosen_prompts(PublicGoods, {"public_goods.news": "You got {news} of {endowment}."})
    assert used["news"].text == "You got {news} of {endowment}."
    assert chosen_prompts(PublicGoods, {"public_goods.news": "Nothing."})["news"].text == "Nothing."
    with pytest.raises(UsageError, match="did you mean 'news'"):
        chosen_prompts(PublicGoods, {"public_goods.news": "{news} {newz}"})
    with pytest.raises(UsageError, match="unknown prompt"):
        chosen_prompts(PublicGoods, {"public_goods.rule": "x"})


def test_a_missing_value_in_a_prompt_is_the_authors_mistake():
    with pytest.raises(TaskError, match="number"):
        Prompt("turn", "Round {number}").render({})


def test_metrics_follow_the_number_of_seats():
    (two,) = PublicGoods().metrics({"players": 2})
    (four,) = PublicGoods().metrics({"players": 4})
    assert isinstance(two, Metric)
    assert two.high == pytest.approx(5 * (10 + 12 / 2))
    assert four.high == pytest.approx(5 * (10 + 12 * 3 / 4))


def define(**attributes):
    """A task with these attributes."""

    async def play(self, referee, a):
        return {a: 1.0}

    usual = {"roles": {"a": Role()}, "play": play, "metrics": lambda self, seats: [games.POINTS]}
    return dataclass(frozen=True)(type("Made", (Task,), {**usual, **attributes}))


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"repeat": 3}, r"Made.repeat .*did you mean 'repeats'"),
        ({"item": Items(WordPair)}, r"Made.item .*did you mean 'items'"),
        ({"metric": lambda self, seats: []}, r"Made.metric .*did you mean 'metrics'"),
        ({"metrics": [games.POINTS]}, "Made.metrics must be a method"),
    ],
)
def test_attributes_that_nobody_would_read_are_refused(attributes, said):
    with pytest.raises(TaskError, match=said):
        define(**attributes)


def test_attributes_and_methods_of_ones_own_are_let_through():
    made = define(PAYOFF=3, words=("a",), prompt=lambda self: "", sample=lambda self: 1)
    assert made().PAYOFF == 3


def test_a_class_without_the_decorator_says_so():
    class Plain(games.Game):
        rounds: int = 3
        roles = {"a": Role()}

        async def play(self, referee, a): ...

    for make in (Plain, lambda: Plain.from_params({})):
        with pytest.raises(TaskError, match=r"write @dataclass\(frozen=True\) above `class Plain`"):
            make()


def test_two_parts_of_one_name_are_found_when_the_class_is_made():
    class Part:
        name = "trust"

    with pytest.raises(TaskError, match="Made: two parts of the result are called 'trust'"):
        define(parts=(Part(), Part()))


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (Metric("m", 2, 1, epsilon=0.1), "needs low <= high and epsilon > 0, found low=2, high=1"),
        (Metric("m", 0, 1, epsilon=0), "epsilon=0"),
        (Metric("m", 0, float("inf"), epsilon=1), "must be finite"),
        (Metric("m", 0, "1", epsilon=1), "high must be a number, not '1'"),
        (Metric("m", 0, 1, epsilon=1, roles=("b",)), "unknown contestant role 'b'"),
        (Metric("m", 0, 1, epsilon=1, roles="a"), r"roles must be a tuple: write roles=\('a',\)"),
        (Metric("m", 0, 1, epsilon=1, better="more"), "better must be 'higher' or 'lower'"),
        ("m", "must return objects like Metric"),
    ],
)
def test_metrics_are_checked_before_a_run(metric, said, tmp_path):
    task = define(metrics=lambda self, seats: [metric])()
    with pytest.raises(TaskError, match=said):
        parley.run(task, ["bot/null"], store=tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_metrics_need_different_names_and_one_at_least():
    twice = define(metrics=lambda self, seats: [games.POINTS, games.POINTS])()
    with pytest.raises(TaskError, match="two metrics are named 'points'"):
        parley.run(twice, ["bot/null"])
    with pytest.raises(TaskError, match="must return at least one Metric"):
        parley.run(define(metrics=lambda self, seats: [])(), ["bot/null"])
