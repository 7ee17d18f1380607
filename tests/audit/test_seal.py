"""The seal of a run: the first digest covers who is who, what a resume may change is on record, and
a seal that was removed is noticed. On both stores, and on runs in every state."""

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest

import parley
from parley import Result
from parley.audit.audit import audit_run
from parley.errors import StoreError
from parley.store import find_run, open_store, read_run
from parley.store.config import MAY_CHANGE, MAY_MOVE
from parley.store.sqlite import run_writer
from tests.audit.seal_program import FUNCTIONS, GIVEN, MODELS
from tests.audit.test_digests import EDITS
from tests.cli.test_cli import parley as command

PROGRAM = Path(__file__).with_name("seal_program.py")
# who plays a run now, and how it is followed: no digest covers these columns of `runs`
SERVING = {"owner", "token", "heartbeat", "heartbeats", "health"}
IN_A_DATABASE = {"changes", "changed", "escapes", "shared", "ending", "planner", "plan_line"}
# what is counted while a run is played: its next seal covers it
COUNTED = {"spent", "unanswered"}
STATES = ("finished", "stopped", "killed", "resumed", "killed again")
UNSEALED = ("killed", "killed again")


def kill_after(calls, store, *run):
    """Play a run in a process of its own until a model was called this often."""
    words = [sys.executable, PROGRAM, store, calls, *run]
    root = PROGRAM.parents[2]
    done = subprocess.run([*map(str, words)], cwd=root, capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    return open_store(store).refs()[0] if not run else find_run(run[0])


def play(state, store):
    """A run in this state, in a store."""
    if state == "killed":
        return kill_after(6, store)
    limits = {} if state == "finished" else {"max_calls": 12}
    ref = parley.run("public_goods", MODELS, store=store, **GIVEN, **limits).ref
    if state == "resumed":
        assert parley.resume(ref.location, functions=FUNCTIONS, max_calls=1000).state == "done"
    if state == "killed again":
        kill_after(3, store, ref.location)
    return ref


@pytest.fixture(scope="module", params=["folder", "postgres"])
def kept(request, tmp_path_factory):
    """A store that keeps its runs for all tests."""
    if request.param == "folder":
        return str(tmp_path_factory.mktemp("seals"))
    return request.getfixturevalue("postgres_server").new_database()


@pytest.fixture(scope="module")
def runs(kept):
    """A run in each state."""
    found = {}
    for state in STATES:
        found[state] = play(state, kept)
        assert changes(found[state]) == []
    return found


@pytest.fixture(params=STATES)
def run(request, runs):
    return request.param, runs[request.param]


def changes(ref, **given):
    return [each.detail for each in audit_run(ref, **given).breaches if each.kind == "digest"]


def is_found(ref):
    """Whether the check `digest` of an audit finds a change, or the run cannot even be read."""
    try:
        with read_run(ref) as reader:
            return bool(list(reader.snapshot.find_changes()))
    except StoreError:
        return True


class Editor:
    """Whoever edits the tables of a run without Parley."""

    def __init__(self, ref):
        self.ref, self.is_file = ref, ref.path is not None
        if self.is_file:
            self.connection = sqlite3.connect(ref.path, isolation_level=None)
            self.where = "TRUE"
        else:
            self.connection = psycopg.connect(ref.store, autocommit=True)
            self.connection.execute("SET search_path TO parley")
            (number,) = self.connection.execute(
                "SELECT run FROM runs WHERE id = %s", (ref.id,)
            ).fetchone()
            self.where = f"run = {number}"

    def __enter__(self):
        return self

    def __exit__(self, *wrong):
        self.connection.close()

    def execute(self, statement, *values):
        mark = "?" if self.is_file else "%s"
        return self.connection.execute(statement.replace("?", mark), values)

    def columns(self):
        """The columns of `runs`, without the key of a database."""
        if self.is_file:
            return {row[1]: bool(row[3]) for row in self.execute("PRAGMA table_info(runs)")}
        rows = self.execute(
            "SELECT column_name, is_nullable = 'NO' FROM information_schema.columns "
            "WHERE table_schema = 'parley' AND table_name = 'runs' AND column_name <> 'run'"
        )
        return dict(rows.fetchall())

    def read(self, column):
        (value,) = self.execute(f"SELECT {column} FROM runs WHERE {self.where}").fetchone()
        return value

    @contextmanager
    def edited(self, **values):
        """The run with other values in some columns of `runs`, for a while."""
        before = {column: self.read(column) for column in values}
        self._write(values)
        try:
            yield
        finally:
            self._write(before)

    def _write(self, values):
        named = ", ".join(f"{column} = ?" for column in values)
        self.execute(f"UPDATE runs SET {named} WHERE {self.where}", *values.values())


def other_values(column, value, is_needed):
    """Values that an editor may put in the place of one."""
    if column in ("config", "identity"):
        facts = json.loads(value)
        name = "seed" if column == "config" else "version"
        yield json.dumps({**facts, name: facts[name] + 1})
    elif column == "state":
        yield from {"running", "done", "stopped", "failed"} - {value}
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield value + 1
    elif isinstance(value, str):
        yield value + "x"
    else:
        yield {"heartbeat": 1.5, "planner": 7}.get(column, "x")
    if value is not None and not is_needed:
        yield None


def test_every_column_of_the_table_of_runs_is_covered_or_only_serves(run, kept):
    state, ref = run
    missed = set()
    with Editor(ref) as editor:
        for column, is_needed in editor.columns().items():
            for value in other_values(column, editor.read(column), is_needed):
                with editor.edited(**{column: value}):
                    if column == "id" and not editor.is_file:  # the reference finds no such run
                        assert is_found(find_run(f"{kept}#{value}"))
                    elif not is_found(ref):
                        missed.add(column)
    expected = SERVING | (set() if ref.path else IN_A_DATABASE)
    if state in UNSEALED:
        expected |= COUNTED
    assert missed <= expected, missed - expected


@pytest.mark.parametrize("state", ["killed", "resumed"])
def test_every_setting_and_every_choice_of_the_configuration_is_covered(runs, state):
    ref = runs[state]
    with Editor(ref) as editor:
        config = json.loads(editor.read("config"))
        assert set(MAY_CHANGE) <= set(config)
        for name, value in config.items():
            changed = [value] if isinstance(value, dict | list) and value else "x"
            with editor.edited(config=json.dumps({**config, name: changed})):
                assert is_found(ref), name
            with editor.edited(config=json.dumps({k: v for k, v in config.items() if k != name})):
                assert is_found(ref), name
        for option in (*MAY_MOVE, "temperature"):
            models = {**config["models"]}
            models["anna"] = {**models["anna"], option: 1}
            with editor.edited(config=json.dumps({**config, "models": models})):
                assert is_found(ref), option
        models = {alias: config["models"][alias] for alias in reversed(config["models"])}
        with editor.edited(config=json.dumps({**config, "models": models})):
            assert is_found(ref)


def swapped(config):
    """A configuration with two models in each other's place."""
    facts = json.loads(config)
    models = facts["models"]
    models["anna"], models["bert"] = models["bert"], models["anna"]
    return json.dumps(facts)


def test_a_removed_digest_is_noticed(run):
    """The attack on the seal: its digest is removed, so that the run looks interrupted."""
    state, ref = run
    with Editor(ref) as editor:
        other = swapped(editor.read("config"))
        with editor.edited(config=other, digest=None, state="running"):
            assert changes(ref)
            with pytest.raises(StoreError, match="changed after it was recorded"):
                parley.resume(ref.location, functions={**FUNCTIONS, "anna": FUNCTIONS["bert"]})
        with editor.edited(digest=None, state="running", status=None, reason=None):
            assert bool(changes(ref)) is (state not in UNSEALED)


def test_models_that_were_swapped_are_noticed_although_the_seal_was_cut_off(run):
    """Without its last rows, the history of a run is that of a run that was killed; but who is who
    was fixed when the run began."""
    _, ref = run
    with Editor(ref) as editor:
        rows = editor.execute(f"SELECT * FROM history WHERE {editor.where}").fetchall()
        editor.execute(f"DELETE FROM history WHERE {editor.where} AND number > 1")
        other = swapped(editor.read("config"))
        reset = {"digest": None, "state": "running", "status": None, "reason": None}
        try:
            with editor.edited(config=other, prices=None, **reset):
                assert any("who is who" in said for said in changes(ref))
        finally:
            editor.execute(f"DELETE FROM history WHERE {editor.where}")
            marks = ", ".join("?" * len(rows[0]))
            for row in rows:
                editor.execute(f"INSERT INTO history VALUES ({marks})", *row)
    assert changes(ref) == []


def test_every_row_of_the_history_is_covered(run):
    _, ref = run
    with Editor(ref) as editor:
        for row in editor.execute(
            f"SELECT number, at, kind, facts, digest FROM history WHERE {editor.where}"
        ).fetchall():
            at_row = f"{editor.where} AND number = {row[0]}"
            for column, old, new in (
                ("at", row[1], row[1] + 1),
                ("kind", row[2], "opened" if row[2] != "opened" else "settings"),
                ("facts", row[3], row[3].replace("{", '{"x":1,', 1).replace(",}", "}")),
                ("digest", row[4], "0" * 64),
            ):
                editor.execute(f"UPDATE history SET {column} = ? WHERE {at_row}", new)
                try:
                    assert is_found(ref), (row[2], column)
                finally:
                    editor.execute(f"UPDATE history SET {column} = ? WHERE {at_row}", old)
            editor.execute(f"UPDATE history SET number = 100 WHERE {at_row}")
            assert is_found(ref)
            renumbered = f"{editor.where} AND number = 100"
            editor.execute(f"UPDATE history SET number = ? WHERE {renumbered}", row[0])
    assert changes(ref) == []


# what an interrupted run has no digest of until it stops
UNTIL_IT_STOPS = {
    "the beginning of a match",
    "the end of a match",
    "the digest of the run",  # there is none
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Runs in files that are not finished, or were not at first."""
    store = tmp_path_factory.mktemp("files")
    return {state: play(state, store) for state in STATES if state != "finished"}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("state", ["stopped", "killed", "resumed", "killed again"])
def test_every_edit_is_found_in_every_state(files, state, edit, tmp_path):
    ref = files[state]
    path = tmp_path / "edited.parley"
    for end in ("", "-wal", "-shm"):  # of a killed process
        if Path(f"{ref.path}{end}").exists():
            shutil.copy(f"{ref.path}{end}", f"{path}{end}")
    change = EDITS[edit]
    if state in UNSEALED and edit.startswith("spent"):
        change = "UPDATE runs SET prices = '[1]'"
    if edit == "state":
        change = "UPDATE runs SET state = 'failed'"
    with closing(sqlite3.connect(path)) as connection, connection:
        change(connection) if callable(change) else connection.execute(change)
    is_open = state in UNSEALED and edit in UNTIL_IT_STOPS
    if edit == "the end of a match" and state != "finished" and state != "resumed":
        return  # its third match has not ended
    assert bool(changes(find_run(path))) is not is_open


def test_a_seat_of_a_match_is_covered_before_the_match_ends(runs):
    """Who sat where belongs to the first link of a match's chains, so no seal is needed."""
    ref = runs["killed"]
    with Editor(ref) as editor:
        rows = editor.execute(
            f"SELECT number, seats, state FROM matches WHERE {editor.where} AND number IN "
            f"(SELECT match FROM calls WHERE {editor.where})"
        ).fetchall()
        assert {state for *_, state in rows} == {"done", "running"}
        for number, seats, _ in rows:
            place = f"{editor.where} AND number = {number}"
            other = seats.replace("anna", "?").replace("bert", "anna").replace("?", "bert")
            editor.execute(f"UPDATE matches SET seats = ? WHERE {place}", other)
            assert changes(ref)
            editor.execute(f"UPDATE matches SET seats = ? WHERE {place}", seats)
    assert changes(ref) == []


def test_a_match_of_another_run_is_no_match_of_this_one(tmp_path):
    """The chains of a match begin with what its own run began with: a better match of another run
    cannot take its place, not even before the run is sealed."""
    ours, other = (play("killed", tmp_path / name) for name in ("ours", "other"))
    with Editor(ours) as editor:
        editor.execute("ATTACH ? AS other", other.location)
        for table in ("calls", "rounds", "scores", "violations", "notes"):
            editor.execute(f"DELETE FROM {table} WHERE match = 1")
            editor.execute(f"INSERT INTO {table} SELECT * FROM other.{table} WHERE match = 1") if (
                table != "calls"
            ) else None
        names = ", ".join(
            row[1] for row in editor.execute("PRAGMA table_info(calls)") if row[1] != "id"
        )
        editor.execute(
            f"INSERT INTO calls ({names}) SELECT {names} FROM other.calls WHERE match = 1"
        )
        editor.execute(
            "UPDATE matches SET (began, ended, digest) = "
            "(SELECT began, ended, digest FROM other.matches WHERE number = 1) WHERE number = 1"
        )
    assert changes(ours)


def test_an_earlier_seal_stays_on_record(run, tmp_path):
    state, ref = run
    found = audit_run(ref)
    with read_run(ref) as reader:
        kinds = [each.kind for each in reader.run.history()]
    earlier = Result(ref).data["run"]["earlier_seals"]
    said = Result(ref).render()
    assert found.earlier_seals == earlier
    if state in ("finished", "stopped", "killed"):
        assert earlier == []
        assert "opened again" not in said + "".join(found.cautions)
        return
    (seal,) = earlier
    assert (seal["state"], seal["status"], seal["matches"]) == ("stopped", "budget", 1)
    assert kinds.index("sealed") < kinds.index("opened", kinds.index("sealed"))
    assert f"1 finished match and the digest {seal['digest']}" in " ".join(said.split())
    (caution,) = [each for each in found.cautions if "opened again" in each]
    assert seal["digest"] in caution
    assert "max_calls" in caution  # the setting that was changed
    (breach,) = changes(ref, digest=seal["digest"])
    assert "an earlier end of this run" in breach


def test_every_state_that_a_kill_can_leave_is_sound_and_goes_on(tmp_path, monkeypatch):
    """The file after each commit, of the first session and of one that resumes it."""
    taken = count(1)

    def copy_after(work):
        def work_and_copy(connection, *rest):
            work(connection, *rest)
            path = tmp_path / f"{next(taken):03}" / "run.parley"
            path.parent.mkdir()
            with closing(sqlite3.connect(path)) as copy:
                connection.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
                with copy:  # its process was killed
                    copy.execute("UPDATE runs SET owner = NULL, token = NULL")

        return work_and_copy

    with monkeypatch.context() as patch:
        patch.setattr(run_writer, "write_group", copy_after(run_writer.write_group))
        given = {**GIVEN, "repeats": 2, "rounds": 1}
        result = parley.run("public_goods", MODELS, store=tmp_path, max_calls=6, **given)
        parley.resume(result.path, functions=FUNCTIONS, max_calls=1000)
    copies = sorted(tmp_path.glob("*/run.parley"))
    assert len(copies) > 10
    for path in copies:
        ref = find_run(path)
        assert changes(ref) == [], path
        if path in copies[::4]:
            resumed = parley.resume(path, functions=FUNCTIONS, max_calls=1000)
            assert resumed.state == "done"
            assert changes(ref) == []


def test_settings_that_a_resume_changes_are_on_record(kept):
    ref = play("stopped", kept)
    options = {"carl": {"base_url": "https://example.org/v1"}}
    with pytest.raises(parley.ParleyError):  # bots take no address
        parley.resume(ref.location, functions=FUNCTIONS, model_options=options)
    parley.resume(ref.location, functions=FUNCTIONS, max_calls=17, concurrency=2)
    parley.resume(ref.location, functions=FUNCTIONS, max_calls=1000)
    with read_run(ref) as reader:
        history = reader.run.history()
    assert [each.kind for each in history if each.kind != "prices"] == [
        *("began", "opened", "sealed"),
        *("opened", "settings", "sealed"),
        *("opened", "settings", "sealed"),
    ]
    kept_settings = [each.facts["settings"] for each in history if "settings" in each.facts]
    assert [(each["max_calls"], each["concurrency"]) for each in kept_settings] == [
        (12, 1),
        (17, 2),
        (1000, 2),
    ]
    assert changes(ref) == []


def test_settings_that_change_after_a_kill_are_reported(tmp_path):
    ref = play("killed", tmp_path)
    parley.resume(ref.location, functions=FUNCTIONS, max_calls=1000)
    (said,) = [each for each in audit_run(ref).cautions if "was opened again" in each]
    assert said.startswith("the run was interrupted")
    assert said.endswith("with another max_calls")


def test_the_command_refuses_a_run_whose_seal_was_removed(tmp_path):
    models = [word for name in ("altruist", "random") for word in ("-m", f"bot/{name}")]
    command("run", "public_goods", *models, "--repeats", "2", cwd=tmp_path)
    (path,) = (tmp_path / "runs").glob("*.parley")
    with closing(sqlite3.connect(path)) as connection, connection:
        (text,) = connection.execute("SELECT config FROM runs").fetchone()
        facts = json.loads(text)
        facts["models"]["altruist"], facts["models"]["random"] = (
            facts["models"]["random"],
            facts["models"]["altruist"],
        )
        connection.execute(
            "UPDATE runs SET config = ?, digest = NULL, state = 'running'", (json.dumps(facts),)
        )
    audit = command("audit", "last", cwd=tmp_path, code=5)
    assert "who is who" in audit.out
    assert "its seal was removed" in audit.out
    resume = command("resume", "last", cwd=tmp_path, code=1)
    assert "was changed after it was recorded" in resume.err
