"""Runs: plans, seeds, resume and what it refuses, faults of participants, concurrency, the Python
door."""

import asyncio
import json
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

import parley
from parley import ParleyError, Result, Seat, UsageError
from parley.audit.audit import audit_run
from parley.config.prepare import prepare_new, prepare_resume
from parley.config.task_catalogue import task_class
from parley.errors import ParticipantError, ReplayError
from parley.options import from_keywords
from parley.plans import Done, MatchSpec, seed_for
from parley.plans.fixed import make_fixed_plan
from parley.providers import _endpoint_health as endpoint_health
from parley.runs import player, start
from parley.runs.progress import Progress, StopSignal
from parley.runs.run_context import RunContext
from parley.runs.scheduler import Scheduler
from parley.store import find_run, open_store, read_run
from parley.store.config import Config
from parley.store.sqlite.run_file import SqliteSnapshot
from parley.tasks.public_goods import PublicGoods
from parley.testing.server import Server, says, sent
from tests import games
from tests.plans.replays import replay_plan

BOTS = {"rider": "bot/free-rider", "good": "bot/altruist", "any": "bot/random"}


def fixed(name, task, contestants, instruments=None, items=(), repeats=1, seed=0):
    return make_fixed_plan(name, task, contestants, instruments or {}, items, repeats, seed)


def seats_of(plan):
    return [tuple(spec.seats.values()) for spec in plan.specs]


def test_round_robin_plays_every_ordered_assignment():
    plan = fixed("round_robin", games.Duel(), ["a", "b", "c"], repeats=2)
    pairs = [("a", "b"), ("a", "c"), ("b", "a"), ("b", "c"), ("c", "a"), ("c", "b")]
    assert seats_of(plan) == pairs * 2
    assert [spec.block for spec in plan.specs] == ["1"] * 6 + ["2"] * 6
    assert [spec.number for spec in plan.specs] == list(range(1, 13))


def test_together_rotates_positions():
    plan = fixed("together", PublicGoods(), ["a", "b", "c"], repeats=4)
    assert seats_of(plan) == [("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b"), ("a", "b", "c")]


def test_each_plays_every_model_on_every_item_and_blocks_are_items():
    plan = fixed("each", games.Spelling(), ["a", "b"], items=["cat", "dog"], repeats=2)
    assert [(spec.item, spec.block, spec.repeat, *spec.seats.values()) for spec in plan.specs] == [
        ("cat", "cat", 1, "a"), ("cat", "cat", 1, "b"), ("dog", "dog", 1, "a"),
        ("dog", "dog", 1, "b"),
        ("cat", "cat", 2, "a"), ("cat", "cat", 2, "b"), ("dog", "dog", 2, "a"),
        ("dog", "dog", 2, "b"),
    ]  # fmt: skip


def test_seeds_come_from_block_and_repeat_not_from_the_cast():
    plan = fixed("round_robin", games.Duel(), ["a", "b", "c"], repeats=3, seed=9)
    other = fixed("round_robin", games.Duel(), ["x", "y", "z"], repeats=3, seed=9)
    assert [spec.seed for spec in plan.specs] == [spec.seed for spec in other.specs]
    assert len({spec.seed for spec in plan.specs}) == 3
    assert seed_for(9, "1", 1) != seed_for(10, "1", 1)


def test_instruments_sit_in_every_match_and_are_not_rotated():
    plan = fixed("each", games.Judged(), ["a", "b"], {"judge": ["j1", "j2"]})
    assert [dict(spec.seats) for spec in plan.specs] == [
        {Seat("writer"): name, Seat("judge", 1): "j1", Seat("judge", 2): "j2"}
        for name in ("a", "b")
    ]


def test_a_plan_is_done_when_all_its_blocks_are():
    plan = fixed("together", PublicGoods(), ["a", "b"], repeats=2)
    assert replay_plan(plan, {}) == ({1: plan.specs[0], 2: plan.specs[1]}, None)
    assert replay_plan(plan, {1: {}})[1] is None
    assert replay_plan(plan, {1: {}, 2: {}})[1] == Done("plan_complete")


@pytest.mark.parametrize(
    ("name", "task", "contestants", "instruments", "match"),
    [
        ("together", PublicGoods(), ["a"], {}, "2 to 10"),
        ("together", PublicGoods(), [f"m{n}" for n in range(11)], {}, "2 to 10"),
        ("together", games.Duel(), ["a", "b"], {}, "round_robin"),
        ("round_robin", games.Duel(), ["a"], {}, "2 contestant seats"),
        ("each", games.Duel(), ["a", "b"], {}, "one contestant seat, but duel has 2"),
        ("each", games.Judged(), ["a"], {"judge": ["j"] * 4}, "0 to 3"),
        ("each", games.Judged(), ["a"], {"jugde": ["j"]}, "did you mean 'judge'"),
        ("roundrobin", games.Duel(), ["a", "b"], {}, "did you mean 'round_robin'"),
        ("together", PublicGoods(), [], {}, "no models"),
    ],
)
def test_a_plan_that_cannot_be_played_is_refused(name, task, contestants, instruments, match):
    with pytest.raises(UsageError, match=match):
        fixed(name, task, contestants, instruments)


def test_the_python_door_plays_and_tells(tmp_path):
    result = parley.run("public_goods", models=BOTS, repeats=4, seed=1, store=tmp_path, rounds=2)
    assert result.state == "done"
    assert len(result.matches) == 4
    assert result.matches[0]["transcript"][0]["kind"] == "tell"
    assert "rider" in str(result.table())
    assert "<svg" in result._repr_html_()
    rows = {row["alias"]: row for row in result.data["results"]}
    assert rows["rider"]["mean"] > rows["good"]["mean"]
    assert rows["rider"]["signature"].startswith(
        "public_goods|rounds:2|endowment:10|multiplier:1.2|feedback:income|"
    )


def test_the_same_seed_gives_the_same_result_and_another_seed_another(tmp_path):
    def once(seed):
        return parley.run("public_goods", BOTS, repeats=3, seed=seed, store=tmp_path).data

    def same(data):
        return json.dumps([data["results"], data["pairs"], data["ranks"]])

    assert same(once(1)) == same(once(1))
    assert same(once(1)) != same(once(2))


def test_functions_plain_and_async_may_play(tmp_path):
    async def generous(view):
        return '{"coins": 10}'

    def reads(view):
        assert view[-1]["role"] == "user"
        return "7" if "Round" in view.text else "0"

    result = parley.run(
        PublicGoods(rounds=1), {"g": generous, "r": reads}, repeats=2, store=tmp_path
    )
    rows = {row["alias"]: row for row in result.data["results"]}
    assert rows["g"]["mean"] == pytest.approx(10.2)
    assert rows["g"]["model_requested"].startswith("python/")


def test_the_door_opens_inside_a_running_event_loop(tmp_path):
    async def notebook():
        return parley.run("public_goods", BOTS, repeats=1, store=tmp_path).state

    assert asyncio.run(notebook()) == "done"

    async def awaited():
        return (await parley.run_async("public_goods", BOTS, repeats=1, store=tmp_path)).state

    assert asyncio.run(awaited()) == "done"


def test_items_judges_and_demonstrations_through_the_door(tmp_path):
    words = [games.Word(str(n), text) for n, text in enumerate(["cat", "dog", "horse"])]

    def knows(view):
        order = view.text.split(": ")[1]
        return next((word.text for word in words if sorted(word.text) == sorted(order)), "?")

    result = parley.run(
        games.Spelling(), {"k": knows, "n": "bot/null"}, items=words, store=tmp_path
    )
    rows = {row["alias"]: row for row in result.data["results"]}
    assert (rows["k"]["mean"], rows["k"]["blocks"]) == (100, 3)
    assert rows["n"]["mean"] == 0
    assert rows["n"]["low"] == 0
    assert rows["n"]["high"] > 0  # no interval has zero width
    assert result.matches[0]["notes"][0]["wanted"] == "cat"

    judged = parley.run(
        games.Judged(),
        {"w": lambda v: "a line"},
        roles={"judge": ["a=bot/random", "b=bot/random"]},
        store=tmp_path,
    )
    assert {row["alias"] for row in judged.data["cost"]} == {"w", "a", "b"}
    assert {row["alias"] for row in judged.data["results"]} == {"w"}  # judges are never ranked


def test_missing_scores_are_counted_not_zeroed(tmp_path):
    result = parley.run(
        games.Judged(),
        {"mute": lambda view: "", "fine": lambda view: "ok"},
        roles={"judge": "bot/random"},
        repeats=3,
        store=tmp_path,
    )
    rows = {row["alias"]: row for row in result.data["results"]}
    assert rows["mute"]["mean"] is None
    assert (rows["mute"]["missing"], rows["mute"]["blocks"]) == (3, 0)
    assert rows["fine"]["missing"] == 0
    assert {"alias": "mute", "kind": "unreadable", "count": 3, "attempts": 9} in result.data[
        "violations"
    ]


class Stops:
    """A function that fails after so many replies, for ever."""

    def __init__(self, after):
        self.left, self.lock = after, threading.Lock()

    def __call__(self, view):
        with self.lock:
            self.left -= 1
            if self.left < 0:
                raise ParticipantError("the service is gone")
        return "5"


def test_a_participant_that_fails_stops_the_run_resumably(tmp_path):
    stops = Stops(7)
    partial = parley.run(
        "public_goods", {"s": stops, "b": "bot/altruist"}, repeats=10, store=tmp_path, concurrency=2
    )
    assert partial.state == "stopped"
    assert "s: the service is gone" in partial.data["run"]["stop"]["reason"]
    assert partial.data["run"]["matches"]["failed"] > 0
    asked = []

    def heals(view):
        asked.append(view)
        return "5"

    whole = parley.resume(partial.path, functions={"s": heals})
    assert whole.state == "done"
    assert len(asked) == 10 * 5 - 7  # what was recorded is not asked for again
    straight = parley.run(
        "public_goods", {"s": lambda view: "5", "b": "bot/altruist"}, repeats=10, store=tmp_path
    )
    assert [row["mean"] for row in whole.data["results"]] == [
        row["mean"] for row in straight.data["results"]
    ]
    assert audit_run(whole.ref).checked["replay"] == 10
    assert audit_run(whole.ref).breaches == []


def test_other_models_go_on_when_one_is_down(tmp_path):
    def down(view):
        raise ParticipantError("no")

    result = parley.run(
        games.Spelling(),
        {"down": down, "up": "bot/null"},
        items=[games.Word(str(n), "cat") for n in range(20)],
        store=tmp_path,
    )
    assert result.state == "stopped"
    assert result.data["run"]["matches"] == {"planned": 40, "done": 20, "failed": 20}


def test_a_bug_in_a_task_fails_the_run_with_its_reason(tmp_path):
    with pytest.raises(ParleyError, match="invalid literal"):
        parley.run(
            games.Fragile(),
            {"a": "bot/null", "b": "bot/null"},
            plan="together",
            repeats=50,
            store=tmp_path,
        )
    (path,) = tmp_path.glob("*.parley")
    assert Result(path).state == "failed"


def test_resuming_under_a_changed_prompt_rule_or_configuration_is_refused_by_name(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    source = Path(games.__file__).read_text()
    game = tmp_path / "my_game.py"
    game.write_text(source)
    reference = f"{game}:Echo"

    def play(reference):
        partial = parley.run(
            reference,
            {"a": Stops(3), "b": "bot/null"},
            repeats=3,
            store=tmp_path / "s",
            concurrency=1,
        )
        assert partial.state == "stopped"
        return partial.path

    path = play(reference)
    functions = {"a": lambda view: "hello"}

    def changed(old, new):
        import sys

        for name in [name for name in sys.modules if name.startswith("parley_task_my_game")]:
            del sys.modules[name]
        assert old in source
        game.write_text(source.replace(old, new))

    def resumed():
        """As with `--task`: a file whose source has changed is loaded only if it is named."""
        return parley.resume(path, functions=functions, task=task_class(reference)())

    changed("say something", "say anything")
    with pytest.raises(UsageError, match="has changed since this run started"):
        parley.resume(path, functions=functions)
    with pytest.raises(ReplayError, match=r"prompt echo\.speak"):
        resumed()
    changed('"Write a line."', '"Write two lines."')  # words that are no prompt of their own
    with pytest.raises(ReplayError, match="another rule of echo"):
        resumed()
    changed("for number in range(self.rounds):", "for number in range(self.rounds - 1):")
    with pytest.raises(ReplayError, match="another rule of echo"):
        resumed()
    changed(
        '"""Everybody speaks, everybody hears all the others, quoted."""',
        '"""A better docstring."""  # and a comment',
    )
    with read_run(find_run(path)) as reader:
        other = Config(**{**vars(reader.info.config), "seed": 5, "repeats": 4})
    with pytest.raises(ReplayError, match=r"repeats was 3, is now 4"):
        asyncio.run(start.resume_run(prepare_new(other, functions=functions), find_run(path)))
    assert parley.resume(path, functions=functions).state == "done"


def test_a_free_first_reply_is_asked_for_without_a_schema(tmp_path):
    """DynaEval A.8: the reply is given freely first, and put into its form by a second request."""

    async def played():
        async with Server(says("About half."), says('{"reason": "-", "coins": 5}')) as server:
            model = {"model": "openai-compatible/m", "base_url": server.url}
            await parley.run_async(
                "public_goods",
                {"m": model, "b": "bot/null"},
                rounds=1,
                repeats=1,
                standardise="always",
                store=tmp_path,
            )
            return server.asked

    free, formed = asyncio.run(played())
    assert "response_format" not in free.body
    assert "JSON" not in free.text
    assert "coins" in json.dumps(formed.body["response_format"])
    assert "JSON" in formed.text


def test_a_finished_run_resumes_to_itself(tmp_path):
    result = parley.run("public_goods", BOTS, repeats=2, store=tmp_path)
    again = Result(result.path, task=task_class("public_goods"))
    assert parley.resume(result.path).data == again.data


@pytest.mark.parametrize(
    ("options", "concurrency", "wanted"), [({}, 7, 7), ({"concurrency": 3}, 20, 3)]
)
def test_matches_in_flight_and_a_models_own_calls_are_bounded(
    tmp_path, options, concurrency, wanted
):
    now, most = 0, 0

    async def counts(view):
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.002)
        now -= 1
        return "hello"

    models = {"a": {"model": counts, **options}}
    parley.run(games.Judged(), models, repeats=40, concurrency=concurrency, store=tmp_path)
    assert most == wanted


def test_cautions_reach_the_one_who_runs(tmp_path):
    prepared = prepare_new(
        Config(
            "public_goods",
            {"multiplier": 9.0},
            {"a": {"model": "bot/random"}, "b": {"model": "bot/random"}},
            ["a", "b"],
            plan="together",
        )
    )
    assert "dilemma" in prepared.cautions[0]


def test_models_that_endpoints_name_are_on_record(tmp_path):
    from parley.match.protocol import Reply, Usage

    async def model(view):
        return Reply("5", model_served="served-2026", usage=Usage(tokens_in=10, tokens_out=2))

    result = parley.run("public_goods", {"a": model, "b": "bot/random"}, repeats=2, store=tmp_path)
    rows = {row["alias"]: row for row in result.data["results"]}
    assert rows["a"]["model_served"] == ["served-2026"]
    costs = {row["alias"]: row for row in result.data["cost"]}
    assert (costs["a"]["calls"], costs["a"]["tokens_in"], costs["a"]["tokens_out"]) == (10, 100, 20)
    assert costs["b"]["tokens_in"] is None
    assert costs["a"]["usd"] is None


def test_no_secret_can_enter_a_run(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-value")
    with pytest.raises(UsageError, match="secret"):
        parley.run(
            "public_goods",
            {"a": "bot/random", "b": "bot/random"},
            name="sk-very-secret-value",
            store=tmp_path,
        )
    with pytest.raises(UsageError, match="api_key_env"):
        parley.run(
            "public_goods",
            {"a": {"model": "vllm/x", "api_key": "abc"}, "b": "bot/random"},
            store=tmp_path,
        )
    assert not list(tmp_path.glob("*.parley"))


def test_the_first_brake_lets_nothing_new_be_asked_even_by_those_who_wait_for_a_place(tmp_path):
    asked = []

    async def slow(view):
        asked.append(view)
        if len(asked) == 2:
            brake.stop("enough")
        await asyncio.sleep(0.01)
        return "hello"

    brake = StopSignal()
    config = Config(
        "judged",
        {},
        {"a": {"model": "python/x:y", "concurrency": 1}},
        ["a"],
        plan="each",
        repeats=20,
        concurrency=20,
    )
    prepared = prepare_new(config, task=games.Judged(), functions={"a": slow})
    ending = asyncio.run(
        start.play_new_run(prepared, open_store(tmp_path), RunContext(stop_signal=brake))
    )
    assert (ending.state, len(asked)) == ("stopped", 2)


def test_requests_that_are_rejected_do_not_speak_against_the_model(tmp_path):
    from parley.errors import Rejected

    words = [games.Word(str(n), "cat") for n in range(12)]
    bad = {"0", "1", "2", "5"}
    seen = []

    def picky(view):
        seen.append(view)
        if len(seen) in (1, 2, 3, 6):
            raise Rejected("filtered")
        return "cat"

    result = parley.run(games.Spelling(), {"p": picky}, items=words, store=tmp_path, concurrency=1)
    assert result.data["run"]["matches"] == {
        "planned": 12,
        "done": 12 - len(bad),
        "failed": len(bad),
    }
    assert "filtered (4 matches)" in result.data["run"]["stop"]["reason"]


def test_an_audit_needs_neither_keys_nor_functions(tmp_path, monkeypatch):
    result = parley.run(
        "public_goods", {"f": lambda view: "5", "b": "bot/random"}, repeats=2, store=tmp_path
    )
    found = audit_run(result.ref, digest=result.digest)
    assert (found.breaches, found.checked["replay"]) == ([], 2)
    assert all("stored results of public_goods" in said for said in found.cautions)


def test_a_run_is_read_as_of_one_moment_while_it_is_played(tmp_path):
    """Somebody looks at everything, again and again, while matches end."""
    looked = 0

    async def look(path):
        nonlocal looked
        while True:
            await asyncio.sleep(0)
            result = Result(path)
            assert len(result.matches) in (0, 40)  # planned together
            with read_run(find_run(path)) as reader:
                assert set(reader.scores.by_match()) == {
                    m.number for m in reader.matches.read() if m.state == "done"
                }
            looked += 1

    async def main():
        config = Config(
            "judged",
            {},
            {"a": {"model": "bot/null"}},
            ["a"],
            plan="each",
            repeats=40,
            concurrency=3,
        )
        task = asyncio.create_task(
            start.play_new_run(prepare_new(config, task=games.Judged()), open_store(tmp_path))
        )
        while not list(tmp_path.glob("*.parley")):  # noqa: ASYNC110
            await asyncio.sleep(0)
        watching = asyncio.create_task(look(*tmp_path.glob("*.parley")))
        ending = await task
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        return ending, watching

    ending, watching = asyncio.run(main())
    assert ending.state == "done"
    assert watching.cancelled() or watching.exception() is None
    assert looked > 0


def test_nothing_of_the_cast_reaches_what_is_sent(tmp_path):
    """Telling names for alias, model and provider, searched for in every request that leaves."""
    sent = []

    async def watched(view):
        sent.append(
            json.dumps([list(view), str(view.seat), view.expect.schema], ensure_ascii=False)
        )
        return '{"coins": 5, "reason": "-"}'

    watched.__name__ = watched.__qualname__ = "quagmire"
    watched.__module__ = "bumblebee"
    models = {"rhubarb": watched, "marzipan": {"model": watched}, "free-rider": "bot/free-rider"}
    for feedback in ("income", "investments"):
        parley.run(
            "public_goods",
            models,
            repeats=2,
            store=tmp_path,
            name=f"kaleidoscope-{feedback}",
            feedback=feedback,
        )
    assert len(sent) == 2 * 2 * 5 * 2
    for secret in (
        "rhubarb",
        "marzipan",
        "free-rider",
        "quagmire",
        "bumblebee",
        "python/",
        "bot/",
        "kaleidoscope",
    ):
        assert not [words for words in sent if secret in words], secret


@pytest.mark.parametrize("wrong", [0, -1])
def test_a_run_that_cannot_be_played_leaves_no_file(tmp_path, wrong):
    with pytest.raises(UsageError, match="concurrency"):
        parley.run("public_goods", BOTS, store=tmp_path, concurrency=wrong)
    assert not list(tmp_path.iterdir())


def test_a_signature_tells_judges_items_and_the_field_apart(tmp_path):
    def signed(task, models, **options):
        return parley.run(task, models, store=tmp_path, **options).data["results"][0]["signature"]

    lines = {"w": lambda view: "a line"}
    plain, judged = (
        signed(games.Judged(), lines),
        signed(games.Judged(), lines, roles={"judge": "bot/random"}),
    )
    assert judged != plain
    assert "judge:bot/random@" in judged
    words = [{"id": "1", "text": "cat"}, {"id": "2", "text": "dog"}]
    one, other = (
        signed(games.Spelling(), {"n": "bot/null"}, items=rows) for rows in (words, words[:1])
    )
    assert one != other
    assert "items:2@" in one
    soft = signed("public_goods", {"a": "bot/altruist", "b": "bot/gradual"}, repeats=2)
    hard = signed("public_goods", {"a": "bot/altruist", "b": "bot/free-rider"}, repeats=2)
    assert soft != hard


def test_items_may_be_plain_rows_and_what_is_no_item_is_refused(tmp_path):
    result = parley.run(
        games.Spelling(),
        {"n": "bot/null"},
        items=[{"text": "cat"}, {"text": "dog"}],
        store=tmp_path,
    )
    assert result.data["results"][0]["blocks"] == 2
    for wrong in ([{"word": "cat"}], ["cat"], [5], "words.jsonl"):
        with pytest.raises(UsageError, match="item"):
            parley.run(games.Spelling(), {"n": "bot/null"}, items=wrong, store=tmp_path)


def test_the_options_of_the_door_can_be_looked_up():
    import inspect

    assert {"models", "roles", "items", "repeats", "seed", "store", "concurrency"} <= set(
        inspect.signature(parley.run).parameters
    )


def test_it_is_known_who_keeps_everybody_waiting(tmp_path):
    tally = Progress()
    seen = []

    async def slow(view):
        await asyncio.sleep(0.05)
        seen.append(tally.slowest())
        return "hello"

    config = Config(
        "judged", {}, {"snail": {"model": "python/x:y"}}, ["snail"], plan="each", repeats=1
    )
    asyncio.run(
        start.play_new_run(
            prepare_new(config, task=games.Judged(), functions={"snail": slow}),
            open_store(tmp_path),
            RunContext(tally),
        )
    )
    ((alias, seconds),) = seen
    assert alias == "snail"
    assert seconds >= 0.04
    assert tally.slowest() is None


def test_runs_in_parallel_threads_find_the_same(tmp_path):
    with ThreadPoolExecutor(6) as threads:
        playing = [
            threads.submit(
                parley.run, "public_goods", BOTS, repeats=2, seed=1, store=tmp_path / str(n)
            )
            for n in range(6)
        ]
        found = {json.dumps(each.result().data["results"]) for each in playing}
    assert len(found) == 1


def test_sampling_seeds_differ_by_seat_turn_and_match_and_are_the_same_when_it_is_played_again(
    tmp_path,
):
    def draws(store, seed=1):
        seen = {}

        def half(view):
            seen.setdefault(view.sampling_seed, []).append(view.seat)
            return '{"coins": 5}'

        parley.run(
            "public_goods",
            {"a": half, "b": half},
            repeats=4,
            rounds=3,
            seed=seed,
            store=tmp_path / store,
        )
        return seen

    first = draws("first")
    assert len(first) == 4 * 3 * 2
    assert all(len(seats) == 1 for seats in first.values())
    assert draws("again") == first
    assert not draws("other", seed=2).keys() & first.keys()


def test_a_model_that_joins_later_changes_no_draw_of_the_matches_of_others(tmp_path):
    def draws(*names):
        seen = {name: set() for name in names}

        def player(name):
            def half(view):
                seen[name].add(view.sampling_seed)
                return '{"coins": 5}'

            return half

        parley.run(
            "public_goods",
            {name: player(name) for name in names},
            plan="round_robin",
            seats=2,
            repeats=2,
            rounds=2,
            seed=1,
            store=tmp_path / "".join(names),
        )
        return seen

    before, after = draws("b", "c"), draws("a", "b", "c")
    assert before["b"] < after["b"]
    assert before["c"] < after["c"]
    new = [after["a"], after["b"] - before["b"], after["c"] - before["c"]]
    assert len(set.union(*new, *before.values())) == sum(map(len, (*new, *before.values())))


def test_matches_that_wait_for_an_endpoint_that_is_down_leave_their_places_to_others(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(endpoint_health, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(endpoint_health, "FIRST_REST", 30.0)
    seen = {"x": [], "y": []}

    async def act(asked, writer):
        mine = seen[asked.body["model"]]
        mine.append(time.monotonic())
        down = asked.body["model"] == "x" and len(mine) > 3
        await (sent(b"down", 500) if down else sent(says(json.dumps({"reason": "x", "coins": 3}))))(
            asked, writer
        )

    async def whole():
        async with Server(act) as server:
            models = {alias: {"model": "vllm/y", "base_url": server.url} for alias in "bcd"}
            models["a"] = {"model": "vllm/x", "base_url": server.url, "deadline": 3}
            task, most = PublicGoods(rounds=2), 0

            class Watched(Progress):
                def __setattr__(self, name, value):
                    nonlocal most
                    most = max(most, value) if name == "in_flight" else most
                    super().__setattr__(name, value)

            tally = Watched()
            config = Config(
                "public_goods",
                {"rounds": 2},
                models,
                list(models),
                plan="cycles",
                repeats=12,
                seed=1,
                seats=2,
                concurrency=2,
            )
            ending = await start.play_new_run(
                prepare_new(config, task=task), open_store(tmp_path), RunContext(tally)
            )
            return Result(ending.ref), most, tally

    result, most, tally = asyncio.run(whole())
    down = seen["x"][-1]
    others = [match for match in result.matches if "a" not in match["seats"].values()]
    assert {match["state"] for match in others} == {"done"}
    # before the first of those that wait has given up
    assert len([at for at in seen["y"] if down < at < down + 2.9]) > 40
    assert 2 < most <= 2 + 2
    assert any("other models continue" in notice for notice in tally.notices)


def test_a_crew_leaves_those_for_later_that_would_only_wait():
    async def whole():
        resting, begun, back = set(), [], asyncio.Event()

        async def play(spec, slot):
            begun.append(spec.number)
            if "a" in spec.seats.values():
                resting.add("a")
                slot.waiting(True)
                await back.wait()
                slot.waiting(False)
                resting.discard("a")
            await asyncio.sleep(0)
            return True

        specs = [
            MatchSpec(n, "1", None, 1, 0, {Seat("x"): "a" if n % 3 else "b"}) for n in range(30)
        ]
        crew = Scheduler(2, play, resting.__contains__, StopSignal(), Progress())
        season = asyncio.create_task(crew.play_all(specs))
        await asyncio.sleep(0.05)
        waiting = list(begun)
        back.set()
        await season
        return waiting, begun

    waiting, begun = asyncio.run(whole())
    assert [number for number in waiting if number % 3 == 0] == list(range(0, 30, 3))
    assert len([number for number in waiting if number % 3]) <= 2
    assert sorted(begun) == list(range(30))


def test_matches_are_made_when_they_are_about_to_begin():
    made, most_ahead, ended = 0, 0, 0

    def specs():
        nonlocal made
        for made in range(1, 201):
            yield MatchSpec(made, "1", None, 1, 0, {})

    async def play(spec, slot):
        nonlocal most_ahead, ended
        most_ahead = max(most_ahead, made - ended)
        await asyncio.sleep(0)
        ended += 1
        return True

    crew = Scheduler(3, play, lambda alias: False, StopSignal(), Progress())
    asyncio.run(crew.play_all(specs()))
    assert ended == 200
    assert most_ahead <= 4


def test_a_long_wait_for_an_endpoint_does_not_take_all_matches_from_the_plan(monkeypatch):
    monkeypatch.setattr("parley.runs.scheduler.MOST_POSTPONED", 10)
    made, begun = 0, []

    def specs():
        nonlocal made
        for made in range(1, 1001):
            yield MatchSpec(made, "1", None, 1, 0, {Seat("players", 1): "down"})

    async def whole():
        back = asyncio.Event()

        async def play(spec, slot):
            begun.append(spec.number)
            if not back.is_set():
                slot.waiting(True)
                await back.wait()
                slot.waiting(False)
            return True

        crew = Scheduler(2, play, lambda alias: not back.is_set(), StopSignal(), Progress())
        season = asyncio.create_task(crew.play_all(specs()))
        await asyncio.sleep(0.05)
        taken = made
        back.set()
        await season
        return taken

    assert asyncio.run(whole()) < 30
    assert sorted(begun) == list(range(1, 1001))


@pytest.mark.parametrize("more", [True, False])
def test_a_crew_ends_and_stops_and_passes_on_what_stops_it(more):
    async def whole():
        begun = []

        async def play(spec, slot):
            begun.append(spec)
            await asyncio.sleep(0)
            return more

        crew = Scheduler(3, play, lambda alias: False, StopSignal(), Progress())
        await crew.play_all([])
        await crew.play_all([MatchSpec(n, "1", None, 1, 0, {}) for n in range(50)])
        return len(begun)

    assert asyncio.run(whole()) == (50 if more else 3)


def test_a_resumed_run_makes_no_query_for_each_match_that_has_ended(tmp_path, monkeypatch):
    queries, rows = count(), SqliteSnapshot.rows

    def counted(self, query, *values):
        next(queries)
        return rows(self, query, *values)

    def resumed(matches):
        """How many queries it takes to resume a run after so many matches."""
        bots = {"a": "bot/random", "b": "bot/altruist"}
        limits = {"repeats": matches + 2, "rounds": 1, "seed": 1, "max_calls": 2 * matches}
        ref = parley.run("public_goods", bots, store=tmp_path, concurrency=1, **limits).ref
        before = next(queries)
        prepared = prepare_resume(ref, from_keywords(max_calls=2 * matches + 4))
        ending = asyncio.run(start.resume_run(prepared, ref))
        assert (ending.state, ending.status) == ("done", "plan_complete")
        return next(queries) - before

    monkeypatch.setattr(SqliteSnapshot, "rows", counted)
    assert resumed(40) == resumed(10)


def test_matches_that_fail_are_not_kept_in_memory(tmp_path, monkeypatch):
    """Each error has a text of its own, as with the id of a request."""
    kept = []
    keep_fault = player.Player.keep_fault

    def watched(self, fault):
        keep_fault(self, fault)
        kept.append(weakref.ref(fault))

    def fail(view):
        raise ValueError(f"request {len(kept)}")

    monkeypatch.setattr(player.Player, "keep_fault", watched)
    with pytest.raises(ParticipantError, match="request 0") as caught:
        parley.run("public_goods", {"a": fail, "b": "bot/altruist"}, repeats=40, store=tmp_path)
    assert len(kept) == 40
    assert caught.value.__cause__ is not None
    with_traceback = [ref() for ref in kept if ref() is not None and ref().__traceback__]
    assert len(with_traceback) <= player.WITH_TRACEBACK


def test_every_participant_is_made_once(tmp_path, monkeypatch):
    """What is checked before a run is what plays."""
    from parley.participants import _registry

    made, make = [], _registry.make_participant

    def count(model, options, task, where):
        made.append(where)
        return make(model, options, task, where)

    monkeypatch.setattr(_registry, "make_participant", count)
    result = parley.run("public_goods", BOTS, repeats=2, store=tmp_path, max_calls=5)
    assert sorted(made) == sorted(result.data["run"]["models"])
    parley.resume(result, max_calls=100)
    assert sorted(made) == sorted([*result.data["run"]["models"]] * 2)
