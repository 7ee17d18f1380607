"""The audit: breaches of every kind planted in records, what a record cannot prove, and what is no
breach at all."""

import json
import re
import shutil
import sqlite3
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import parley
from parley import Problem
from parley.audit.audit import CHECKS, audit_run
from parley.audit.balance import ROTATING, find_imbalance
from parley.audit.messages import find_unsynchronous
from parley.audit.replay import describe_difference
from parley.plans.arrangements import ARRANGEMENTS
from parley.plans.choice import choose_plan
from parley.store import find_run
from parley.store.config import Config
from parley.store.reader.scores import ScoreRows
from parley.store.types import MatchRow, SeatingCount
from parley.tasks.code_review import CodeReview
from parley.tasks.idiom_solitaire import IdiomSolitaire
from parley.tasks.public_goods import PublicGoods
from tests.cli.test_cli import parley as command
from tests.plans.replays import first_matches
from tests.resealed import reseal

MODELS = {
    name: {"model": "bot/translator", "strength": strength}
    for name, strength in (("anna", 0.2), ("bert", 0.9))
}
WORDS = [
    "海阔天空",
    "空前绝后",
    "后发制人",
    "人定胜天",
    "天下无敌",
    "天外有天",
    "空空如也",
    "人山人海",
    "也无风雨",
]


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    """Two models in both roles on two items, judged: four matches."""
    store = tmp_path_factory.mktemp("translated")
    result = parley.run(
        "translation",
        MODELS,
        dataset="samples",
        items=2,
        roles={"judge": ["bot/judge"]},
        store=store,
    )
    assert audit_run(result.ref).breaches == []
    return result.path


@pytest.fixture(scope="module")
def chained(tmp_path_factory):
    """Idiom solitaire with a dictionary of its own: both orders of two models, three times."""
    store = tmp_path_factory.mktemp("chained")
    (store / "own.txt").write_text("\n".join(WORDS), encoding="utf-8")
    task = {"dictionary": [str(store / "own.txt")], "traditional": False, "common": 0}
    models = {
        "anna": {"model": "bot/speaker", "strength": 1},
        "bert": {"model": "bot/dead-end", "strength": 1},
    }
    result = parley.run("idiom_solitaire", models, repeats=3, store=store, **task)
    found = audit_run(result.ref)
    assert found.breaches == []
    assert found.checked["works"] == 6
    return result.path


@pytest.fixture(scope="module")
def paid(tmp_path_factory):
    """Three players at one table, who rotate: five matches; one of them says who it is, and one
    does not keep to the form."""
    store = tmp_path_factory.mktemp("paid")
    models = {
        "anna": "bot/altruist",
        "bert": lambda view: '{"reason": "I am GPT-4", "coins": 5}',
        "carl": lambda view: "no",
    }
    result = parley.run("public_goods", models, repeats=5, rounds=2, store=store)
    assert audit_run(result.ref).breaches == []
    return result.path


def planted(path, folder, *changes):
    """A copy of a run in which rows, or the messages of a match, are changed, and all digests
    computed anew: what only a digest shows has tests of its own."""
    copy = folder / "planted.parley"
    shutil.copy(path, copy)
    with sqlite3.connect(copy) as connection:
        for change in changes:
            if isinstance(change, str):
                assert connection.execute(change).rowcount
                continue
            number, edit = change
            for id, messages in connection.execute(
                "SELECT rowid, messages FROM rounds WHERE match = ?", (number,)
            ).fetchall():
                found = json.loads(messages)
                edit(found)
                connection.execute(
                    "UPDATE rounds SET messages = ? WHERE rowid = ?", (json.dumps(found), id)
                )
        reseal(connection)
    connection.close()
    return copy


def kinds(path):
    return {breach.kind for breach in audit_run(find_run(path)).breaches}


def reply_first(messages):
    """A reply stands before its question."""
    if messages[0][1] == "ask" and messages[0][0] == 2:
        messages.insert(0, messages.pop(1))


def told_inside(messages):
    """Words are told while a round is open."""
    for at, message in enumerate(messages):
        if message[:2] == [1, "reply"]:
            messages.insert(at, [1, "tell", None, ["players.1"], "Hurry.", 0])
            return


def named(messages):
    for message in messages:
        if message[1] == "ask":
            message[4] += " Anna is good at this."


def told_more(messages):
    """One model gets a hint before it begins."""
    for message in messages:
        if message[:2] == [1, "ask"]:
            message[4] += "\nHint: mind the last sentence."


def told_to_one(messages):
    """One of three at a table gets a hint before it begins."""
    for at, message in enumerate(messages):
        if message[1] == "tell" and message[0] == 0:
            messages.insert(at + 1, [0, "tell", None, ["players.2"], "The others are generous.", 0])
            return


def never_masked(messages):
    for message in messages:
        if message[:2] == [1, "tell"]:
            message[4] += " Player 2 wrote: I am GPT-4."


def read_early(messages):
    """A reply is marked as readable before its round closed."""
    for message in messages:
        if message[1] == "reply" and message[2] == "translator":
            message[3] = ["proofreader"]


def unheard(messages):
    """The rows of a judge's replies are gone."""
    messages[:] = [
        message for message in messages if message[1] != "reply" or message[2] != "judge.1"
    ]


SWAPPED = """UPDATE matches SET seats = json_set(seats, '$.translator', json_extract(seats, '$.proofreader'),
    '$.proofreader', json_extract(seats, '$.translator')) WHERE number = 1"""  # noqa: E501
COLUMNS = (
    "block, item, repeat, seed, seats, unscored, stage, arm, state, reason, rounds, began, ended"
)
COPIED = f"""INSERT INTO matches (number, {COLUMNS})
    SELECT 99, {COLUMNS} FROM matches WHERE number = 1"""
GONE = "DELETE FROM matches WHERE number = 4"
TRANSLATED = {
    "a reply before its question": ((1, reply_first), {"synchrony"}),
    "a name in the referee's words": ((1, named), {"anonymity", "shown", "replay"}),
    "other words for one model": ((2, told_more), {"information", "shown", "replay"}),
    "seats swapped": (SWAPPED, {"plan", "balance", "items"}),
    "an item missing for one": (GONE, {"plan", "balance", "items"}),
    "one match too many": (COPIED, {"plan", "balance", "items"}),
    "another item": (
        "UPDATE matches SET item = (SELECT item FROM matches WHERE number = 4) WHERE number = 1",
        {"plan", "items"},
    ),
    "a score": (
        (
            "UPDATE scores SET value = 0.99 WHERE match = 1 AND seat = 'translator' "
            "AND metric = 'bleu'"
        ),
        {"replay"},
    ),
    "a score less": ("DELETE FROM scores WHERE match = 1 AND metric = 'judge'", {"replay"}),
    "a judge's vote": (
        (
            "UPDATE calls SET content = replace(content, 'score\":', 'score\":1') "
            "WHERE seat = 'judge.1'"
        ),
        {"replay"},
    ),
    "a note": ("UPDATE notes SET facts = replace(facts, 'So says', 'I say')", {"replay"}),
    "a reply taken away": (
        "DELETE FROM calls WHERE match = 1 AND seat = 'judge.1'",
        {"shown", "replay"},
    ),
    "a reply that others could read at once": ((1, read_early), {"replay"}),
    "a reply that stands nowhere": ((1, unheard), {"replay"}),
    "a reply nobody was asked for": (
        "UPDATE calls SET round = 9 WHERE match = 1 AND seat = 'judge.1'",
        {"shown", "replay"},
    ),
}


@pytest.mark.parametrize("what", TRANSLATED)
def test_a_breach_in_a_run_of_pairs_is_found_under_its_kind(translated, tmp_path, what):
    change, wanted = TRANSLATED[what]
    assert wanted <= kinds(planted(translated, tmp_path, change))


PAID = {
    "told inside a round": ((1, told_inside), {"synchrony"}),
    "one at a table told more": ((1, told_to_one), {"information", "shown", "replay"}),
    "a claim shown": ((1, never_masked), {"anonymity", "replay"}),
    "a violation less": (
        "DELETE FROM violations WHERE match = 2 AND kind = 'unreadable'",
        {"replay"},
    ),
    "a masking less": ("DELETE FROM violations WHERE match = 2 AND kind = 'identity'", {"replay"}),
    "a violation reworded": (
        "UPDATE violations SET detail = 'Gemini' WHERE match = 2 AND kind = 'identity'",
        {"replay"},
    ),
    "positions that do not rotate": (
        "UPDATE matches SET seats = (SELECT seats FROM matches WHERE number = 1)",
        {"balance"},
    ),
}


@pytest.mark.parametrize("what", PAID)
def test_a_breach_at_one_table_is_found_under_its_kind(paid, tmp_path, what):
    change, wanted = PAID[what]
    assert wanted <= kinds(planted(paid, tmp_path, change))


def test_without_the_task_what_needs_no_rule_is_still_found_and_the_rest_is_told(
    paid, translated, tmp_path
):
    changed = "UPDATE runs SET identity = json_set(identity, '$.rule', 'another')"
    found = audit_run(find_run(planted(paid, tmp_path, changed)))
    assert found.breaches == []
    assert found.unchecked.keys() == {"replay", "plan"}
    assert any("scores were not verified" in caution for caution in found.cautions)
    out = command("audit", tmp_path / "planted.parley", cwd=tmp_path).out
    assert re.search(r"plan +not checked +–", out)
    assert out.splitlines()[-1].startswith("verdict: no breach found (")
    assert "; 2 checks could not be made: replay, plan (the task or its" in out.splitlines()[-1]
    for change, kind in (
        ("DELETE FROM violations WHERE match = 2 AND kind = 'identity'", "anonymity"),
        (
            "UPDATE violations SET detail = 'Gemini' WHERE match = 2 AND kind = 'identity'",
            "anonymity",
        ),
        ((1, never_masked), "anonymity"),
        ((1, told_inside), "synchrony"),
    ):
        assert kind in kinds(planted(paid, tmp_path, changed, change))
    for change, kind in (
        (GONE, "items"),
        ((1, named), "anonymity"),
        ((2, told_more), "information"),
    ):
        assert kind in kinds(planted(translated, tmp_path, changed, change))


def test_a_rule_without_a_file_is_replayed_and_the_doubt_is_reported(paid, tmp_path):
    changed = "UPDATE runs SET identity = json_set(identity, '$.rule', '')"
    found = audit_run(find_run(planted(paid, tmp_path, changed)))
    assert (found.breaches, found.unchecked) == ([], {})
    assert any("cannot tell whether its rule has changed" in each for each in found.cautions)
    change, wanted = PAID["a violation less"]
    assert wanted <= kinds(planted(paid, tmp_path, changed, change))


def test_what_differs_is_said(translated, paid, tmp_path):
    (scored,) = audit_run(
        find_run(planted(translated, tmp_path, TRANSLATED["a score"][0]))
    ).breaches
    assert "translator bleu: on record 0.99, in the replay 0." in scored.detail
    (noted,) = audit_run(
        find_run(
            planted(
                paid, tmp_path, "UPDATE notes SET facts = replace(facts, '10', '9') WHERE match = 1"
            )
        )
    ).breaches
    assert "notes differ: 1 invested players.1: on record 9, in the replay 10" in noted.detail
    changed = planted(paid, tmp_path, PAID["a violation reworded"][0])
    (reworded,) = [each for each in audit_run(find_run(changed)).breaches if each.kind == "replay"]
    assert "on record 'Gemini', in the replay 'GPT-4'" in reworded.detail
    told = [
        breach.detail
        for breach in audit_run(find_run(planted(translated, tmp_path, (2, told_more)))).breaches
    ]
    # where the words differ, and from which other match
    assert sum("Hint: mind the" in detail for detail in told) == 2


@pytest.mark.parametrize("how", ["max_calls", "max_blocks"])
def test_a_run_that_its_bounds_have_stopped_is_no_breach(tmp_path, how):
    bound = (
        {"max_calls": 30}
        if how == "max_calls"
        else {"max_blocks": 12, "until_stable": True, "half_width": 0.1}
    )
    result = parley.run(
        "public_goods", {"a": "bot/random", "b": "bot/altruist"}, store=tmp_path, **bound
    )
    assert (result.state, result.data["run"]["stop"]["status"]) == ("stopped", "budget")
    found = audit_run(result.ref)
    assert found.breaches == []
    assert "the run is not finished" in found.unchecked["balance"]


def test_a_bound_that_was_never_set_is_a_breach(tmp_path):
    result = parley.run(
        "public_goods", {"a": "bot/random", "b": "bot/altruist"}, store=tmp_path, max_calls=30
    )
    unbounded = "UPDATE runs SET config = json_set(config, '$.max_calls', NULL)"
    assert (
        "no limit on calls or cost was set"
        in audit_run(find_run(planted(result.path, tmp_path, unbounded))).breaches[0].detail
    )
    (wrong,) = audit_run(
        find_run(planted(result.path, tmp_path, "UPDATE runs SET status = 'plan_complete'"))
    ).breaches
    assert "has the status `plan_complete`, but its plan has not ended" in wrong.detail


def test_scores_of_a_match_that_has_not_ended_are_a_breach(tmp_path, monkeypatch):
    """They are found while matches are read, without a query for each match."""
    result = parley.run(
        "public_goods", {"a": "bot/random", "b": "bot/altruist"}, store=tmp_path, max_calls=30
    )
    score = (
        "INSERT INTO scores (match, seat, metric, value) SELECT number, j.key, 'payoff', 1 "
        "FROM matches, json_each(seats) AS j WHERE number = 3 LIMIT 1"
    )
    monkeypatch.delattr(ScoreRows, "of")
    (breach,) = audit_run(find_run(planted(result.path, tmp_path, score))).breaches
    assert (breach.kind, breach.match) == ("plan", 3)
    assert "has scores, although it has not ended" in breach.detail


def test_masked_claims_are_listed_and_no_breach(paid, tmp_path):
    found = audit_run(find_run(paid))
    assert Counter(claim["alias"] for claim in found.masked) == {"bert": 10}
    first = found.masked[0]
    assert (first["match"], first["round"], first["masked"]) == (1, 1, "GPT-4")
    assert json.loads(command("audit", paid, "--json", cwd=tmp_path).out)["masked"] == found.masked
    said = command("audit", paid, cwd=tmp_path).out
    assert "GPT-4" in said
    seen = found.anonymity
    assert (seen.found, seen.masked) == (10, 10)
    assert seen.replies > 10
    assert f"{seen.replies} replies checked, 10 found, 10 masked. No rule can see" in said


def test_an_answer_of_the_dictionary_that_was_changed_is_found(chained, tmp_path):
    with sqlite3.connect(chained) as connection:
        (first,) = connection.execute(
            "SELECT result FROM effects WHERE match = 1 ORDER BY round, number LIMIT 1"
        ).fetchone()
    connection.close()
    first = json.loads(first)
    other = next(word for word in WORDS if word != first)
    change = (
        f"UPDATE effects SET result = '{json.dumps(other, ensure_ascii=False)}' WHERE match = 1 "
        f"AND number = 0"
    )
    found = audit_run(find_run(planted(chained, tmp_path, change))).breaches
    assert {"works", "replay"} <= {breach.kind for breach in found}
    (doubt,) = [breach.detail for breach in found if breach.kind == "works"]
    assert f"on record '{other}', now '{first}'" in doubt


def test_a_dictionary_that_is_not_there_or_another_one_is_told(chained, tmp_path):
    own = chained.parent / "own.txt"
    words = own.read_bytes()
    try:
        own.unlink()
        found = audit_run(find_run(chained))
        assert found.breaches == []
        assert "works" in found.unchecked
        assert any(
            "lookups in dictionary were not repeated" in caution for caution in found.cautions
        )
        own.write_text("海阔天空\n空前绝后")
        assert "a different version is installed" in audit_run(find_run(chained)).unchecked["works"]
    finally:
        own.write_bytes(words)


def test_verdicts_on_programs_are_held_against_scores_and_otherwise_trusted(tmp_path):
    add = Problem(
        "add",
        "Add.",
        ("assert add(1, 2) == 3",),
        signature="def add(a, b)",
        names=("add",),
        reference="def add(a, b):\n    return a + b",
    )
    bots = {"a": {"model": "bot/coder", "strength": 1}, "b": {"model": "bot/coder", "strength": 0}}
    result = parley.run(
        CodeReview(rounds=1),
        bots,
        items=[add],
        store=tmp_path,
        unsafe_run_code_without_isolation=True,
    )
    found = audit_run(result.ref)
    assert found.breaches == []
    assert any("verdicts on 2 programs were not verified" in caution for caution in found.cautions)
    forged = planted(
        result.path,
        tmp_path,
        "UPDATE effects SET result = json_set(result, '$.passed', json('true'))",
    )
    assert kinds(forged) == {"replay"}


def test_a_model_whose_name_stands_in_a_prompt_is_told(tmp_path):
    models = {"a": "bot/altruist", "b": "bot/random"}
    words = {"public_goods.news": "The pool paid you {news} coins, says claude-opus-9."}
    result = parley.run("public_goods", models, repeats=1, store=tmp_path, prompts=words)
    with sqlite3.connect(result.path) as connection:
        connection.execute(
            "UPDATE calls SET model_served = 'claude-opus-9' WHERE seat = 'players.1'"
        )
        reseal(connection)
    connection.close()
    found = audit_run(result.ref)
    assert found.breaches == []
    assert any(
        "and all seats can read them: claude-opus-9" in caution for caution in found.cautions
    )


def test_every_check_has_its_line_in_the_table_and_in_the_docs(translated, tmp_path):
    shown = command("audit", translated, cwd=tmp_path).out
    for check in set(CHECKS) - {"works", "recalled", "votes"}:
        assert f"\n{check} " in shown
    assert "\nworks " not in shown  # it consults nothing
    assert "\nrecalled " not in shown  # nor does it evolve
    assert "\nvotes " not in shown


@given(
    st.sampled_from([PublicGoods(), IdiomSolitaire(dictionary=("x",))]),
    st.sampled_from(sorted(ARRANGEMENTS)),
    st.integers(2, 5),
    st.integers(1, 7),
    st.randoms(use_true_random=False),
)
def test_every_plan_is_even_and_no_longer_is_with_a_match_less_or_two_seats_swapped(
    task, plan, models, repeats, random
):
    aliases = [f"m{number}" for number in range(models)]
    try:
        specs = first_matches(choose_plan(plan, task, aliases, {}, [], repeats, 0))
    except parley.UsageError:
        return  # a plan that the task does not have
    config = Config(task.name, {}, {}, aliases, plan=plan)
    roles = {
        name: "instrument" if role.instrument else "contestant" for name, role in task.roles.items()
    }
    matches = [
        MatchRow(
            *(
                spec.number,
                spec.block,
                None,
                spec.repeat,
                spec.seed,
                dict(spec.seats),
                spec.unscored,
            ),
            *("done", None, 1, None, None),
        )
        for spec in specs
    ]

    def imbalances(matches):
        counts = Counter((f"block {match.block}", tuple(match.seats.items())) for match in matches)
        seatings = [
            SeatingCount(0, "", place, dict(seats), count)
            for (place, seats), count in sorted(counts.items(), key=lambda each: each[0][0])
        ]
        shared = Counter((match.block, match.repeat) for match in matches).most_common(1)[0][1] > 1
        return list(find_imbalance(config, roles, seatings, plan in ROTATING and not shared))

    assert not imbalances(matches)
    tables = Counter((match.block, match.repeat) for match in matches)
    if max(tables.values()) > 1:
        gone = random.randrange(len(matches))
        found = {kind for kind, _ in imbalances(matches[:gone] + matches[gone + 1 :])}
        assert found == {"balance", "items"} or len(matches[0].seats) == models
        seats = matches[gone].seats
        one, other = list(seats)[:2]
        seats[one], seats[other] = seats[other], seats[one]
        assert {kind for kind, _ in imbalances(matches)} == {"balance", "items"}


@given(
    st.lists(
        st.lists(st.integers(1, 3), min_size=1, max_size=3, unique=True), min_size=1, max_size=4
    ),
    st.data(),
)
def test_rounds_in_step_are_so_and_no_message_may_move_across_its_round(rounds, data):
    messages = []
    for number, seats in enumerate(rounds, 1):
        keys = [f"s.{seat}" for seat in seats]
        messages.append({"round": number, "kind": "ask", "sender": None, "audience": keys})
        messages += [
            {"round": number, "kind": "reply", "sender": key, "audience": []} for key in keys
        ]
        messages.append({"round": number, "kind": "tell", "sender": None, "audience": keys})
    assert not list(find_unsynchronous(messages))
    at = data.draw(st.integers(0, len(messages) - 1))
    moved = messages[:at] + messages[at + 1 :]
    to = data.draw(st.integers(0, len(moved)))
    moved.insert(to, messages[at])
    order = [(message["round"], message["kind"]) for message in moved]
    steps = {"ask": 0, "reply": 1, "tell": 2}
    in_step = order == sorted(order, key=lambda place: (place[0], steps[place[1]]))
    assert bool(list(find_unsynchronous(moved))) != in_step


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=6,
    )
)
def test_a_difference_is_short_and_always_found(value):
    assert "on record" in describe_difference({"a": [1, value]}, {"a": [2, value]})
    assert len(describe_difference("x" * 900 + "a", "x" * 900 + "b")) < 200
    assert describe_difference([1], [1, value]).startswith("2: on record nothing")


@pytest.mark.parametrize("kind", ["'other'", "NULL"])
def test_a_note_of_another_kind_is_a_breach(translated, tmp_path, kind):
    """By its kind an analysis finds a note: one that is changed hides what judges said."""
    path = planted(translated, tmp_path, f"UPDATE notes SET kind = {kind} WHERE kind = 'votes'")
    (breach, *_) = [each for each in audit_run(find_run(path)).breaches if each.kind == "replay"]
    assert "notes differ" in breach.detail
    assert "kind of note: on record" in breach.detail
