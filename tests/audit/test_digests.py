"""Digests: every change of a run's file is found, and a file that was rewritten as a whole by the
digest that the run printed."""

import asyncio
import json
import shlex
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import parley
from parley.audit.audit import audit_run
from parley.errors import StoreError
from parley.store import find_run, open_store
from tests.cli.test_cli import parley as command
from tests.resealed import reseal

MODELS = {
    "anna": "bot/altruist",
    "bert": lambda view: '{"reason": "why not", "coins": 5}',
    "carl": lambda view: "no",  # breaks the form: failed attempts and violations
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Three players at one table, who rotate."""
    store = tmp_path_factory.mktemp("runs")
    result = parley.run("public_goods", MODELS, repeats=3, rounds=2, store=store)
    with closing(sqlite3.connect(result.path)) as connection, connection:
        connection.execute("UPDATE calls SET model_served = 'm-1', tokens_in = 100, latency = 0.5")
        connection.execute(
            """UPDATE runs SET prices = '[]', spent = '{"calls": 30}', unanswered = '{}'"""
        )
        reseal(connection)
    return find_run(result.path)


def swap_models(connection):
    (text,) = connection.execute("SELECT config FROM runs").fetchone()
    config = json.loads(text)
    models = config["models"]
    models["anna"], models["bert"] = models["bert"], models["anna"]
    connection.execute("UPDATE runs SET config = ?", (json.dumps(config),))


def rename_everywhere(connection):
    for table, column in (("runs", "config"), ("runs", "identity"), ("matches", "seats")):
        connection.execute(f"UPDATE {table} SET {column} = REPLACE({column}, 'anna', 'dora')")


def delete_last_block(connection):
    (text,) = connection.execute("SELECT config FROM runs").fetchone()
    config = json.loads(text)
    config["repeats"] -= 1
    connection.execute("UPDATE runs SET config = ?", (json.dumps(config),))
    ((last,),) = connection.execute("SELECT block FROM matches ORDER BY number DESC LIMIT 1")
    gone = "SELECT number FROM matches WHERE block = ?"
    for table in ("calls", "effects", "rounds", "scores", "violations", "notes"):
        connection.execute(f"DELETE FROM {table} WHERE match IN ({gone})", (last,))
    connection.execute("DELETE FROM matches WHERE block = ?", (last,))
    connection.execute("UPDATE runs SET planned = (SELECT COUNT(*) FROM matches)")


def swap_matches(connection):
    for table in ("calls", "rounds", "scores", "violations", "notes"):
        connection.execute(
            f"UPDATE {table} SET match = CASE match WHEN 1 THEN -2 ELSE -1 END "
            "WHERE match IN (1, 2)"
        )
        connection.execute(f"UPDATE {table} SET match = -match WHERE match < 0")


def delete_match(connection):
    for table in ("calls", "effects", "rounds", "scores", "violations", "notes"):
        connection.execute(f"DELETE FROM {table} WHERE match = 2")
    connection.execute("DELETE FROM matches WHERE number = 2")


def set_seed(connection):
    (text,) = connection.execute("SELECT config FROM runs").fetchone()
    connection.execute("UPDATE runs SET config = ?", (json.dumps({**json.loads(text), "seed": 9}),))


EDITS = {
    "two models swapped in the configuration": swap_models,
    "a model renamed everywhere": rename_everywhere,
    "the last block deleted and repeats lowered": delete_last_block,
    "tokens": "UPDATE calls SET tokens_in = 1",
    "the served model": "UPDATE calls SET model_served = 'm-2' WHERE match = 2",
    "times and latency": "UPDATE calls SET at = at + 1, latency = 0.4 WHERE match = 1",
    "spent, unanswered, prices": "UPDATE runs SET spent = NULL, unanswered = NULL, prices = NULL",
    "state": "UPDATE runs SET state = 'stopped', status = 'budget'",
    "a score": "UPDATE scores SET value = value + 0.01 WHERE match = 1",
    "a reply": "UPDATE calls SET content = REPLACE(content, '5', '6') WHERE match = 1",
    "the reason in a reply": "UPDATE calls SET content = REPLACE(content, 'why not', 'because')",
    "a deleted match": delete_match,
    "two matches swapped": swap_matches,
    "notes": "UPDATE notes SET facts = REPLACE(facts, '5', '6')",
    "the seed": set_seed,
    "removed violations": "DELETE FROM violations",
    "removed failed attempts": "DELETE FROM calls WHERE attempt > 0",
    # beyond those that were tried first
    "messages": "UPDATE rounds SET messages = CAST(REPLACE(messages, 'coin', 'cent') AS BLOB)",
    "the beginning of a match": "UPDATE matches SET began = began - 1",
    "the end of a match": "UPDATE matches SET ended = ended + 1 WHERE number = 3",
    "the digest of the run": "UPDATE runs SET digest = NULL",
    "the digest of the run's first part": "UPDATE runs SET origin = NULL",
    "the digests of the run": "UPDATE runs SET origin = NULL, digest = NULL",
    "the digest of a match": "UPDATE matches SET digest = NULL WHERE number = 1",
    "the digest of a call": "UPDATE calls SET digest = '' WHERE match = 1",
    "the identity": "UPDATE runs SET identity = REPLACE(identity, 'public', 'secret')",
    "when the run was made": "UPDATE runs SET created = created - 86400",
    "a call of no match": "UPDATE calls SET match = 77 WHERE match = 1 AND round = 2",
}


def edited(run, folder, *edits):
    """A copy of the run in which something was changed."""
    path = folder / "edited.parley"
    shutil.copy(run.location, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        for edit in edits:
            if callable(edit):
                edit(connection)
            else:
                assert connection.execute(edit).rowcount
    return find_run(path)


def changes(ref, **given):
    return [breach for breach in audit_run(ref, **given).breaches if breach.kind == "digest"]


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_every_edit_is_found(run, tmp_path, edit):
    assert changes(edited(run, tmp_path, edit))


def test_nothing_is_found_where_nothing_was_changed(run):
    found = audit_run(run)
    assert found.breaches == []
    assert found.checked["digest"] == found.matches == 3
    assert found.digest is not None
    assert not any("stored results" in said for said in found.cautions)  # they are recomputed
    assert any(
        "cannot notice that the whole record was replaced" in said for said in found.cautions
    )
    found = audit_run(run, digest=found.digest)
    assert found.breaches == []
    assert not any("the whole record was replaced" in said for said in found.cautions)


@pytest.mark.parametrize("edit", ["tokens", "the served model", "times and latency"])
def test_what_was_rewritten_as_a_whole_is_found_by_the_digest_that_was_printed(run, tmp_path, edit):
    ref = edited(run, tmp_path, EDITS[edit], reseal)
    assert audit_run(ref).breaches == []
    before = audit_run(run).digest
    assert [breach.detail for breach in changes(ref, digest=before)] == [
        f"the run's digest is {audit_run(ref).digest}, but --digest gives {before}: this is a "
        "different record, or it was changed"
    ]


def test_the_first_row_that_was_changed_is_named(run, tmp_path):
    edit = "UPDATE calls SET tokens_out = 7 WHERE match = 2 AND round = 2 AND seat LIKE '%2'"
    one, *others = changes(edited(run, tmp_path, edit))
    assert [each.match for each in (one, *others)] == [2, 2, 2]
    assert one.detail == (
        "the calls of this match have changed since they were recorded, from round 2, "
        "players.2, attempt 1 on"
    )


def test_results_of_analyses_may_be_replaced(run, tmp_path):
    ref = edited(run, tmp_path, "INSERT INTO part_results VALUES ('x.y', '1', '{}', '{}', '[]')")
    assert changes(ref) == []


def test_a_run_that_stopped_and_went_on_has_whole_chains(tmp_path):
    stopped = parley.run(
        "public_goods",
        ["bot/altruist", "bot/random", "bot/free-rider"],
        repeats=3,
        rounds=3,
        max_calls=10,
        store=tmp_path,
    )
    assert stopped.state == "stopped"
    before = stopped.digest
    assert before
    assert changes(stopped.ref, digest=before) == []
    edit = "DELETE FROM calls WHERE id = (SELECT MAX(id) FROM calls)"
    (tmp_path / "other").mkdir()
    assert changes(edited(stopped.ref, tmp_path / "other", edit))
    assert parley.resume(stopped.path, max_calls=1000).state == "done"
    found = audit_run(stopped.ref)
    assert found.breaches == []
    assert found.digest not in (None, before)


WHILE_IT_STOOD_STILL = {
    "calls": (
        "UPDATE calls SET tokens_out = 7 WHERE id IN (1, 9)",
        "the calls of this match have changed since they",
    ),
    "configuration": (set_seed, "who is who has changed since the run began"),
    "prices": (
        "UPDATE runs SET prices = '[1]'",
        "the prices are not the ones that were recorded",
    ),
    "spending": (
        "UPDATE runs SET spent = NULL",
        "the run's configuration, prices, spending, final state",
    ),
    "no digests": (
        "UPDATE runs SET origin = NULL",
        "who is who has changed",
    ),
}


@pytest.mark.parametrize(("edit", "said"), WHILE_IT_STOOD_STILL.values(), ids=WHILE_IT_STOOD_STILL)
def test_a_run_that_was_changed_while_it_stood_still_does_not_go_on(tmp_path, edit, said):
    stopped = parley.run(
        "public_goods",
        ["bot/altruist", "bot/random", "bot/free-rider"],
        repeats=3,
        rounds=3,
        max_calls=10,
        store=tmp_path,
    )
    (tmp_path / "other").mkdir()
    ref = edited(stopped.ref, tmp_path / "other", edit)
    before = Path(ref.location).read_bytes()
    with pytest.raises(StoreError, match="was changed after it was recorded") as refused:
        asyncio.run(open_and_close(ref))
    assert said in str(refused.value)
    assert "`parley audit`" in str(refused.value)
    assert Path(ref.location).read_bytes() == before
    assert changes(ref)  # and an audit still finds it


async def open_and_close(ref):
    await (await open_store(ref.store).open(ref)).close()


def test_the_command_prints_the_digest_and_compares_it(tmp_path):
    models = [word for name in ("altruist", "random") for word in ("-m", f"bot/{name}")]
    played = command("run", "public_goods", *models, cwd=tmp_path)
    digest = played.err.split("digest ")[1].partition(";")[0]
    assert len(digest) == 64
    printed = shlex.split(played.err.split("the record is unchanged: ")[1].splitlines()[0])
    at = printed.index("audit")  # before it: how this program was called
    command(*printed[at:], cwd=tmp_path)
    other = command("audit", "last", "--digest", "0" * 64, cwd=tmp_path, code=5)
    assert f"the run's digest is {digest}, but --digest gives 000" in other.out


def test_an_index_or_a_view_of_somebody_elses_is_refused(run, tmp_path):
    """A query could find other scores through it than those that the digests were taken of."""
    for number, sql in enumerate(
        (
            "CREATE INDEX forged ON scores (judge, value, metric)",
            "CREATE TRIGGER forged AFTER INSERT ON scores BEGIN DELETE FROM notes; END",
            "DROP VIEW usage; CREATE VIEW usage AS SELECT 1",
        )
    ):
        copy = tmp_path / f"{number}.parley"
        shutil.copy(run.location, copy)
        with closing(sqlite3.connect(copy)) as file:
            file.executescript(sql)
        with pytest.raises(StoreError, match="which Parley did not create"):
            parley.Result(copy).data  # noqa: B018
