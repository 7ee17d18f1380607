"""The command: what it prints, where, with which exit code, and what it says to wrong input."""

import csv
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from parley import Result, run
from parley.cli import main
from parley.config import task_catalogue
from parley.store.sqlite import run_writer
from parley.tables import text_width

HERE = Path(__file__).parents[2]
EXAMPLE = str(HERE / "examples" / "prisoners_dilemma.py")
PAIR = ("-m", "bot/free-rider", "-m", "bot/altruist")


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


def parley(*words, cwd, env=None, code=0):
    """The command as a shell would call it, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["parley", *map(str, words)])
        for name, value in (env or {}).items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit) as end:
            main()
    done = Said(end.value.code, out.getvalue(), err.getvalue())
    assert done.code in (0, 1, 2, 3, 4, 5) if code is None else done.code == code, (
        f"exit {done.code}\n{done.out}\n{done.err}"
    )
    return done


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A folder with one finished run in its store."""
    place = tmp_path_factory.mktemp("played")
    parley(
        "run",
        "public_goods",
        *PAIR,
        "-m",
        "bot/random",
        "--repeats",
        4,
        "--name",
        "first",
        cwd=place,
    )
    return place


def test_data_goes_to_stdout_and_the_rest_to_stderr(tmp_path):
    done = parley("run", "public_goods", *PAIR, "--json", "--repeats", 2, cwd=tmp_path)
    assert done.json["schema"] == "parley.result/1"
    assert "written to runs/" in done.err


def test_the_result_object_has_the_promised_keys(played):
    data = parley("show", "public", "--json", cwd=played).json
    assert set(data) == {
        "schema", "run", "results", "violations", "left_out", "pairs", "ranks", "positions",
        "tables", "ratings", "stability", "rounds", "partners", "passes", "judges", "programs",
        "cost", "prices", "digits", "rejudged", "leading", "outcomes", "topics", "external",
        "efficiency", "parts", "identical", "shown", "evolve", "resolved_pairs", "devices",
        "stored_parts",
    }  # fmt: skip
    wanted = {
        "id",
        "name",
        "task",
        "params",
        "plan",
        "seed",
        "state",
        "stop",
        "matches",
        "parley",
        "created",
    }
    assert wanted <= set(data["run"])
    assert data["run"]["stop"] == {"status": "plan_complete", "reason": None}
    assert data["run"]["matches"] == {"planned": 4, "done": 4, "failed": 0}
    assert set(data["results"][0]) == {
        "alias", "model_requested", "model_served", "role", "metric", "unit", "mean", "low",
        "high", "sd", "interval", "blocks", "matches", "missing", "violations", "signature",
        "defaulted",
    }  # fmt: skip
    assert set(data["pairs"][0]) == {
        "role",
        "metric",
        "a",
        "b",
        "difference",
        "low",
        "high",
        "p",
        "blocks",
    }
    assert set(data["ranks"][0]) == {"role", "metric", "alias", "low", "high"}
    assert set(data["cost"][0]) == {
        "alias", "role", "calls", "tokens_in", "tokens_cached", "tokens_written", "tokens_out",
        "tokens_reasoning", "unanswered", "usd", "usd_at_least",
    }  # fmt: skip


def test_equal_runs_give_equal_text(tmp_path):
    def once():
        data = parley(
            "run", "public_goods", *PAIR, "--repeats", 2, "--seed", 5, "--json", cwd=tmp_path
        ).json
        return {key: value for key, value in data.items() if key != "run"}

    assert json.dumps(once()) == json.dumps(once())


def test_the_table_shows_mean_interval_and_n(played):
    out = parley("show", "public", cwd=played).out
    assert re.search(
        r"1 +free-rider +\d+\.\d\d +\d+\.\d\d to \d+\.\d\d\*? +\d\.\d\d +[ ├─●┤]+\n", out
    )
    assert out.startswith("public_goods, players: payoff (coins); higher is better; n = 4 matches")
    assert "signature: public_goods|rounds:5" in out


@pytest.mark.parametrize(
    ("form", "mark"),
    [("markdown", "| rank | model |"), ("latex", r"\begin{tabular}"), ("csv", "alias,")],
)
def test_tables_come_in_several_forms_each_with_the_signature(played, form, mark):
    out = parley("show", "public", "--format", form, cwd=played).out
    assert mark in out
    assert "public_goods|rounds:5" in out.replace("\\_", "_")
    assert "●" not in out  # drawings are for the terminal


@pytest.mark.parametrize("words", [("datasets",), ("run", "public_goods", *PAIR, "--dry-run")])
def test_other_tables_fit_the_terminal_too(tmp_path, words):
    out = parley(*words, cwd=tmp_path, env={"COLUMNS": "76"}).out
    assert max(map(text_width, out.splitlines())) <= 76


def test_csv_is_for_machines(played):
    rows = list(
        csv.DictReader(parley("show", "public", "--format", "csv", cwd=played).out.splitlines())
    )
    data = parley("show", "public", "--json", cwd=played).json["results"]
    assert [float(row["mean"]) for row in rows] == [row["mean"] for row in data]
    assert [float(row["low"]) for row in rows] == [row["low"] for row in data]


@pytest.mark.parametrize("name", ["last", "first", "public_goods", "public"])
def test_a_run_answers_to_several_names(played, name):
    assert parley("show", name, "--json", cwd=played).json["run"]["name"] == "first"


def refused(folder):
    """A run against an address where nobody listens."""
    models = (
        "-m",
        "a=vllm/x",
        "-m",
        "bot/random",
        "-M",
        "a.base_url=http://127.0.0.1:9/v1",
        "-M",
        "a.deadline=0.5",
    )
    return parley("run", "public_goods", *models, "--repeats", 1, cwd=folder, code=3)


def test_a_stopped_run_says_why_wherever_it_is_shown(tmp_path):
    refused(tmp_path)
    out = parley("show", "last", cwd=tmp_path).out
    assert "stopped: 0 of 1 match; a: http://127.0.0.1:9/v1/chat/completions" in out
    run = parley_result(tmp_path).head.run.id
    assert f"; resume with `parley resume {run}`" in out
    result = parley_result(tmp_path)
    assert "stopped: 0 of 1 match" in repr(result)
    assert "stopped: 0 of 1 match" in result._repr_html_()


def test_a_run_out_of_calls_is_shown_with_the_command_that_resumes_it(tmp_path):
    bots = ("-m", "bot/free-rider", "-m", "bot/random", "--repeats", 2)
    parley("run", "public_goods", *bots, "--max-calls", 12, cwd=tmp_path, code=4)
    run = parley_result(tmp_path).head.run.id
    out = parley("show", "last", cwd=tmp_path).out
    assert f"; resume with `parley resume {run}` and a higher limit (--max-calls N)" in out


def parley_result(folder):
    (path,) = (folder / "runs").glob("*.parley")
    return Result(path)


def test_resuming_a_finished_run_says_so(played):
    assert "there is nothing to resume" in parley("resume", "last", cwd=played).err


def test_ls_lists_runs_newest_first(played):
    assert re.search(
        r"public_goods-\S+ +first +public_goods +free-rider, altruist, random +done +4/4 +60",
        parley("ls", cwd=played).out,
    )
    (facts,) = parley("ls", "--json", cwd=played).json
    assert (facts["name"], facts["state"]) == ("first", "done")


def test_an_empty_store_is_no_error(tmp_path):
    assert parley("ls", "--json", cwd=tmp_path).json == []


def test_a_match_is_shown_as_each_seat_saw_it(played):
    facts = parley("show", "public", 2, "--json", cwd=played).json
    assert {"seats", "rounds", "views", "scores", "violations"} <= set(facts)
    assert facts["seats"] == {
        "players.1": "altruist",
        "players.2": "random",
        "players.3": "free-rider",
    }
    assert [turn["role"] for turn in facts["views"]["players.1"]] == ["user", "assistant"] * 5
    assert len(facts["rounds"]) == 5
    text = parley("show", "public", 2, cwd=played).out
    assert "note: invested Player 1: 10, Player 2: " in text
    assert "Player 3: free-rider" in text


def test_a_fair_run_passes_its_audit(played):
    facts = parley("audit", "public", "--json", cwd=played).json
    assert facts["breaches"] == []
    every = dict.fromkeys(("digest", "synchrony", "shown", "replay", "anonymity", "information"), 4)
    assert facts["checked"] == {**every, "plan": 1, "balance": 1, "items": 1}
    assert facts["unchecked"] == {}


def copied(played, folder):
    """The run, to be tampered with."""
    (path,) = (played / "runs").glob("*.parley")
    (folder / "runs").mkdir()
    planted = folder / "runs" / "planted.parley"
    planted.write_bytes(path.read_bytes())
    return planted


def said_otherwise(messages):
    """Round 2 asked with words that give another seat's plan away."""
    for message in messages:
        if message[:2] == [2, "ask"]:
            message[4] = "Player 2 will invest 10 coins."


def asked_late(messages):
    """A question of round 1 that was put after its replies."""
    for message in [message for message in messages if message[:2] == [1, "ask"]]:
        messages.remove(message)
        messages.append(message)


def named(messages):
    """News that name a model."""
    for message in messages:
        if message[:2] == [2, "tell"]:
            message[4] += " One of you is free-rider."


BREACHES = {
    "shown": said_otherwise,
    "synchrony": asked_late,
    "anonymity": named,
    "replay": "UPDATE scores SET value = 70 WHERE match = 1",
    "replay notes": "DELETE FROM notes",
    "replay violations": (
        "INSERT INTO violations VALUES (1, 0, 1, 'players.1', 0, 'identity', 'I am "
        "Claude', 'masked')"
    ),
    "replay end": "UPDATE matches SET state = 'aborted'",
    "plan casts": """UPDATE matches SET seats = '{"players.1":"random","players.2":"free-rider","players.3":"altruist"}'""",  # noqa: E501
    "plan seeds": "UPDATE matches SET seed = seed + 1 WHERE number = 2",
    "plan blocks": "UPDATE matches SET block = '1'",
    "plan missing": "DELETE FROM matches WHERE number = 4",
    "plan unended": "UPDATE matches SET state = 'stopped' WHERE number = 3",
    "plan metrics": "UPDATE runs SET identity = json_set(identity, '$.metrics[0].better', 'lower')",
    "replay calls": (
        "INSERT INTO calls (match, round, seat, attempt, view_digest, content, finish, at, "
        "digest) VALUES (1, 99, 'players.1', 0, x'', '', '', 0, '')"
    ),
    "plan strangers": (
        "INSERT INTO scores (match, seat, metric, value) VALUES (77, 'players.1', 'payoff', 1)"
    ),
    "balance": "UPDATE matches SET seats = (SELECT seats FROM matches WHERE number = 2)",
}


@pytest.mark.parametrize("kind", BREACHES)
def test_a_breach_planted_in_the_record_is_found(played, tmp_path, kind):
    planted = copied(played, tmp_path)
    with sqlite3.connect(planted) as connection:
        if callable(breach := BREACHES[kind]):
            for id, messages in connection.execute(
                "SELECT rowid, messages FROM rounds WHERE match = 1"
            ).fetchall():
                found = json.loads(messages)
                breach(found)
                connection.execute(
                    "UPDATE rounds SET messages = ? WHERE rowid = ?", (json.dumps(found), id)
                )
        else:
            connection.execute(breach)
    connection.close()
    facts = parley("audit", planted, "--json", cwd=tmp_path, code=5).json
    assert kind.split()[0] in {breach["kind"] for breach in facts["breaches"]}


def test_the_record_can_be_read_by_plain_sql(played):
    (path,) = (played / "runs").glob("*.parley")
    with sqlite3.connect(path) as connection:
        rows = connection.execute(
            "SELECT round, kind, content FROM messages WHERE match = 1 AND kind = 'ask' "
            "ORDER BY number"
        ).fetchall()
        usage = connection.execute("SELECT alias, SUM(calls) FROM usage GROUP BY alias").fetchall()
    connection.close()
    assert [(round, kind) for round, kind, _ in rows] == [(n, "ask") for n in range(1, 6)]
    assert "Round 1" in rows[0][2]
    assert dict(usage) == {"free-rider": 20, "altruist": 20, "random": 20}


def test_a_task_of_ones_own_is_played_from_its_file(tmp_path):
    done = parley(
        "run",
        EXAMPLE,
        "-m",
        "bot/tit-for-tat",
        "-m",
        "bot/defector",
        "-m",
        "bot/random",
        "--json",
        cwd=tmp_path,
    )
    rows = {row["alias"]: row["mean"] for row in done.json["results"]}
    assert rows["defector"] > rows["tit-for-tat"]
    assert done.json["run"]["matches"]["done"] == 60


def test_the_example_is_under_sixty_lines():
    assert len(Path(EXAMPLE).read_text().splitlines()) < 60


def test_tasks_describes_roles_parameters_metrics_and_prompts(tmp_path):
    facts = parley("tasks", "public_goods", "--json", cwd=tmp_path).json
    assert facts["params"]["multiplier"]["default"] == 1.2
    assert facts["prompts"]["public_goods.turn"] == ["endowment", "number", "rounds"]
    assert facts["metrics"][0]["unit"] == "coins"
    assert "players" in facts["roles"]
    assert facts["params"]["feedback"]["type"] == "income or investments"
    # prompts are shown in full
    assert "common pool" in parley("tasks", "public_goods", cwd=tmp_path).out
    assert set(parley("tasks", "--json", cwd=tmp_path).json) == set(task_catalogue.task_names())
    assert "bot/tit-for-tat" in parley("tasks", EXAMPLE, cwd=tmp_path).out


def test_models_and_doctor_show_no_secret_of_an_address(tmp_path):
    env = {
        "OPENAI_API_KEY": "sk-abcdefghijklmnop",
        "OPENAI_BASE_URL": "http://user:hunter2hunter2@127.0.0.1:9/sk-abcdefghijklmnop/v1",
        "VLLM_BASE_URL": "http://127.0.0.1:9/v1?api_key=topsecret12345",
    }
    for words in (
        ("doctor", "--no-calls"),
        ("doctor", "--no-calls", "--json"),
        ("models",),
        ("models", "--json"),
    ):
        said = parley(*words, cwd=tmp_path, env=env, code=int("doctor" in words))
        for secret in ("hunter2", "topsecret", "sk-abcdefghijklmnop"):
            assert secret not in said.out + said.err


def test_models_and_doctor_name_keys_but_never_show_them(tmp_path):
    env = {"OPENAI_API_KEY": "sk-do-not-show-me", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    for words in (("models",), ("models", "--json"), ("doctor",), ("doctor", "--json")):
        done = parley(*words, cwd=tmp_path, env=env, code=int("doctor" in words))
        assert "sk-do-not-show-me" not in done.out + done.err
    facts = parley("doctor", "--json", cwd=tmp_path, env=env, code=1).json
    assert facts["sandbox"] == "bubblewrap"
    state = {row["provider"]: row["state"] for row in facts["endpoints"]}
    assert "does not answer" in state["openai"]


def test_the_demo_needs_nothing_and_says_what_it_wrote(tmp_path):
    done = parley("demo", "--bots-only", cwd=tmp_path)
    *_, last = done.err.strip().splitlines()
    page = Path(last.rpartition(": ")[2])
    assert page.suffix == ".html"
    text = page.read_text(encoding="utf-8")
    # who leads and how sure it is; two clicks lead to a match that the leader lost
    assert '<p class="lead"><bdi>free-rider is first with' in text
    assert "✓ audited: no breach" in text
    assert '<a href="#s0-matches"><strong>10</strong> matches</a>' in text
    assert re.search(
        r"<summary><bdi>Match \d+: [^<]*</bdi><span class=\"sub\"><bdi>[^<]*below its mean", text
    )
    (path,) = (tmp_path / "runs").glob("*.parley")
    assert f"written to runs/{path.name}" in done.err
    assert "95% interval" in done.out


def test_the_demo_can_be_played_again(tmp_path):
    for _ in range(2):
        parley("demo", "--bots-only", cwd=tmp_path)
    listed = json.loads(parley("ls", "--json", cwd=tmp_path).out)
    assert {run["name"] for run in listed} == {"demo", "demo-2"}


WRONG = {
    "unknown task": (("run", "pubic_goods", *PAIR), "did you mean 'public_goods'"),
    "no such file": (("run", "./none.py", *PAIR), "task file ./none.py does not exist"),
    "unknown provider": (("run", "public_goods", "-m", "opnai/x", "-m", "bot/random"),
                         "did you mean 'openai'"),
    "no slash": (("run", "public_goods", "-m", "gpt", "-m", "bot/random"), "gpt"),
    "unknown bot": (("run", "public_goods", "-m", "bot/freerider", "-m", "bot/random"),
                    "did you mean 'free-rider'"),
    "unknown parameter": (("run", "public_goods", *PAIR, "--set", "round=3"),
                          "did you mean 'rounds'"),
    "wrong type": (("run", "public_goods", *PAIR, "--set", "rounds=many"), "whole number"),
    "out of bounds": (("run", "public_goods", *PAIR, "--set", "rounds=0"), "at least 1"),
    "no value": (("run", "public_goods", *PAIR, "--set", "rounds"), "KEY=VALUE"),
    "zero models": (("run", "public_goods"), "model"),
    "one model": (("run", "public_goods", "-m", "bot/random"), "2 to 10"),
    "too many": (("run", "public_goods", *[w for n in range(11) for w in ("-m",
        f"m{n}=bot/random")]), "2 to 10"),
    "twice": (("run", "public_goods", "-m", "bot/random", "-m", "bot/random"), "alias"),
    "unknown option": (("run", "public_goods", *PAIR, "-M", "altruist.strenght=1"), "strenght"),
    "option of nobody": (("run", "public_goods", *PAIR, "-M", "altruits.x=1"),
                         "did you mean 'altruist'"),
    "option form": (("run", "public_goods", *PAIR, "-M", "x=1"), "ALIAS.KEY=VALUE"),
    "no role": (("run", "public_goods", *PAIR, "--role", "judge=bot/random"), "judge"),
    "unknown plan": (("run", "public_goods", *PAIR, "--plan", "roundrobin"),
                     "did you mean 'round_robin'"),
    "no items": (("run", "public_goods", *PAIR, "--dataset", "x.jsonl"), "does not use a dataset"),
    "zero repeats": (("run", "public_goods", *PAIR, "--repeats", "0"), "repeats"),
    "unknown prompt": (("run", "public_goods", *PAIR, "--prompt", "public_goods.rule=x"), "x"),
    "unknown flag": (("run", "public_goods", *PAIR, "--repeat", "3"), "--repeats"),
    "no key": (("run", "public_goods", "-m", "openai/gpt-4.1", "-m", "bot/random"),
               "OPENAI_API_KEY"),
    "no address": (("run", "public_goods", "-m", "openai-compatible/x", "-m", "bot/random"),
                   "base_url"),
    "wrong address": (("run", "public_goods", "-m", "a=vllm/x", "-M", "a.base_url=localhost", "-m",
                       "bot/random"), "http://"),
    "password": (("run", "public_goods", "-m", "a=vllm/x", "-M", "a.base_url=http://u:p@h/v1", "-m",
                  "bot/random"), "password"),
    "no script": (("run", "public_goods", "-m", "scripted/none.txt", "-m", "bot/random"),
                  "none.txt"),
    "no function": (("run", "public_goods", "-m", "python/os:nothing", "-m", "bot/random"),
                    "nothing"),
    "a sandbox and none": (
        ("run", "code_review", *PAIR, "--sandbox", "docker", "--unsafe-run-code-without-isolation"),
        "remove one of them"
    ),
    "unknown run": (("show", "nothing"), "unknown run"),
    "unknown match": (("show", "public", "99"), "1 to 4"),
    "unknown command": (("shwo",), "shwo"),
    "store that is a file": (("ls", "--store", "runs.txt"), "must be a folder"),
    "store of an unknown kind": (("ls", "--store", "mysql://x"), "must be a folder or postgresql:"),
    "store that cannot be reached": (
        ("ls", "--store", "postgresql://127.0.0.1:1/x"), "check the address, and that the server",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_gets_a_clear_message_and_plays_nothing(played, name):
    words, message = WRONG[name]
    (played / "runs.txt").write_text("")
    before = sorted((played / "runs").iterdir())
    clean = {"OPENAI_API_KEY": "", "OPENAI_COMPATIBLE_BASE_URL": ""}
    faulty = ("store that is a file", "store that cannot be reached")
    done = parley(*words, cwd=played, env=clean, code=1 if name in faulty else 2)
    assert message in done.err
    assert len(done.err) < 700
    assert sorted((played / "runs").iterdir()) == before


def test_an_unreadable_store_is_named(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "torn.parley").write_bytes(b"SQLite format 3\x00" + b"\x07" * 4000)
    assert "torn.parley" in parley("show", "torn", cwd=tmp_path, code=1).err
    assert "torn.parley" in parley("resume", "torn", cwd=tmp_path, code=1).err
    assert "torn.parley" in parley("ls", cwd=tmp_path).err


def test_an_endpoint_that_refuses_stops_the_run_resumably(tmp_path):
    done = refused(tmp_path)
    assert "a: http://127.0.0.1:9/v1/chat/completions" in done.err
    assert "parley resume" in done.err
    (facts,) = parley("ls", "--json", cwd=tmp_path).json
    assert facts["state"] == "stopped"


def test_a_prompt_can_be_replaced_by_a_file(tmp_path):
    (tmp_path / "turn.txt").write_text(
        "Now, in round {number} of {rounds}, out of {endowment}: how many?"
    )
    parley(
        "run",
        "public_goods",
        *PAIR,
        "--repeats",
        1,
        "--prompt",
        "public_goods.turn=turn.txt",
        cwd=tmp_path,
    )
    assert "out of 10: how many?" in parley("show", "public", 1, cwd=tmp_path).out
    (tmp_path / "bad.txt").write_text("How many, {who}?")
    done = parley(
        "run", "public_goods", *PAIR, "--prompt", "public_goods.turn=bad.txt", cwd=tmp_path, code=2
    )
    assert (
        "unknown variable in your text for prompt 'turn': 'who'; available: endowment" in done.err
    )


def test_plain_progress_is_shown_for_what_takes_longer_than_two_seconds(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import time\ndef slow(view):\n    time.sleep(0.5)\n    return '5'\n"
    )
    done = parley(
        "run",
        "public_goods",
        "-m",
        "python/slow:slow",
        "-m",
        "bot/random",
        "--repeats",
        1,
        "--set",
        "rounds=6",
        cwd=tmp_path,
    )
    assert re.search(r"\d+ of 1 match, 1 being played, \d+ of ~\d+ calls", done.err)


def test_help_of_every_command_has_an_example_or_a_sentence(tmp_path):
    out = parley("--help", cwd=tmp_path).out
    for name in ("run", "resume", "ls", "show", "audit", "tasks", "models", "doctor", "demo"):
        assert re.search(rf"^  {name} +\S", out, re.MULTILINE)
        assert len(parley(name, "--help", cwd=tmp_path).out) > 100


@pytest.mark.parametrize(
    "tampered",
    [
        "UPDATE runs SET config = '{'",
        "UPDATE runs SET config = '[]'",
        "UPDATE runs SET identity = 'x'",
        "UPDATE runs SET owner = 'nonsense', state = 'running'",
        "UPDATE matches SET seats = 'x'",
        "UPDATE matches SET seats = '[]'",
        "UPDATE runs SET identity = '{}'",
        "UPDATE rounds SET messages = '[1, 2]'",
        "UPDATE scores SET value = 'much'",
        "UPDATE matches SET state = 'planned' WHERE number = 2",
        "UPDATE rounds SET messages = '{{'",
        "DROP TABLE calls",
    ],
)
def test_a_record_that_was_tampered_with_is_an_error_or_a_breach_and_never_a_crash(
    played, tmp_path, tampered, monkeypatch
):
    monkeypatch.setattr(run_writer, "STALE", 1.0)  # how long an unknown owner is waited for
    planted = copied(played, tmp_path)
    with sqlite3.connect(planted) as connection:
        connection.execute(tampered)
    connection.close()
    for words in (
        ("audit", planted),
        ("show", planted),
        ("show", planted, 1),
        ("ls",),
        ("resume", planted),
    ):
        parley(*words, cwd=tmp_path, code=None)


def test_odd_names_of_runs_and_stores_are_no_crash(tmp_path):
    parley("show", "x" * 5000, cwd=tmp_path, code=2)
    parley("show", "y" * 300, cwd=tmp_path, code=2)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "gone.parley").symlink_to(tmp_path / "nowhere")
    assert parley("ls", "--json", cwd=tmp_path).json == []
    for name in (
        "sp ace",
        "ha#sh",
        "que?ry",
        "per%41cent",
        "quo'te",
        "ümläut",
        os.fsdecode(b"bad\xff"),
    ):
        parley(
            "run", "public_goods", *PAIR, "--repeats", 1, "--store", tmp_path / name, cwd=tmp_path
        )
        parley("audit", "last", "--store", tmp_path / name, cwd=tmp_path)


def shell(words, cwd, **options):
    """The command in a shell of its own, whose surroundings can be spoiled."""
    line = f"{sys.executable} -m parley {words}"
    return subprocess.run(
        line, shell=True, cwd=cwd, capture_output=True, check=False, timeout=60, **options
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_crash(tmp_path, closed):
    assert (
        shell(
            f"run public_goods -m bot/random -m bot/altruist --repeats 1 {closed}", tmp_path
        ).returncode
        == 0
    )
    assert len(list((tmp_path / "runs").glob("*.parley"))) == 1


def test_a_terminal_that_lacks_letters_and_a_full_disk_are_no_crash(played):
    for encoding in ("latin-1", "ascii"):
        done = shell("show last", played, env={**os.environ, "PYTHONIOENCODING": encoding})
        assert (done.returncode, done.stderr) == (0, b"")
    done = shell("ls > /dev/full", played)
    assert done.returncode == 1
    assert b"No space left" in done.stderr
    assert b"Traceback" not in done.stderr


def test_files_that_leave_and_metrics_that_break_are_told(tmp_path):
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(3)\n")
    assert "SystemExit" in parley("run", "./leaves.py", *PAIR, cwd=tmp_path, code=2).err
    source = Path(EXAMPLE).read_text().replace("epsilon=0.25 * self.rounds", "epsilom=1")
    (tmp_path / "broken.py").write_text(source)
    assert (
        "metrics() failed"
        in parley(
            "run", "./broken.py", "-m", "bot/defector", "-m", "bot/random", cwd=tmp_path, code=1
        ).err
    )
    parley("tasks", "./broken.py", cwd=tmp_path)
    parley("show", "last", 99999999999999999999, cwd=tmp_path, code=2)
    parley("ls", "--store", "~nobody-of-that-name/x", cwd=tmp_path, code=2)


def test_no_word_of_a_model_steers_the_terminal(tmp_path):
    run(
        "translation",
        {"red": lambda view: "\x1b[31mred", "bot": "bot/null"},
        items=1,
        store=tmp_path / "runs",
    )
    shown = parley("show", "last", 1, cwd=tmp_path).out
    assert "\x1b" not in shown
    assert "␛[31mred" in shown


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("created = 1e30", "bad.parley is damaged: its creation time 1e+30 is not a valid time"),
        (
            f"""config = json_set(config, '$.params.x', json('{"[" * 900 + "]" * 900}'))""",
            "bad.parley: the configuration of the run cannot be read: it has more than",
        ),
        (
            f"""prices = '{"[" * 900 + "]" * 900}'""",
            "bad.parley is damaged: prices.0 must be",
        ),
    ],
)
def test_a_bad_run_is_named_and_hides_no_other(played, tmp_path, damage, said):
    store = tmp_path / "runs"
    store.mkdir()
    (path,) = (played / "runs").glob("*.parley")
    for name in ("good", "bad"):
        (store / f"{name}.parley").write_bytes(path.read_bytes())
    with sqlite3.connect(store / "bad.parley") as connection:
        connection.execute(f"UPDATE runs SET {damage}")
    connection.close()
    done = parley("ls", "--json", cwd=tmp_path)
    assert len(done.json) == 1
    assert said in done.err


def test_a_fault_that_nobody_has_foreseen_hides_no_run(played, tmp_path, monkeypatch):
    def fail(reader):
        raise KeyError("odd")

    monkeypatch.setattr("parley.cli.ls.collect_run_facts", fail)
    (path,) = (played / "runs").glob("*.parley")
    done = parley("ls", "--json", cwd=played)
    assert done.json == []
    assert f"{path.name} cannot be listed: KeyError: 'odd'" in done.err
