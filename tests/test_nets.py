"""Run files made before the modules were moved: they read, replay and are scored as on that day.

tests/data/runs has the files, and beside each of them what the commands said of it (NAME.json).
Nothing there is made anew; a difference means that old runs are read otherwise. Only commands are
used here, so that no test depends on where code stands.

The digest of a rule changes with every import line that is moved, and its scheme is to change, too.
Then `audit` would replay nothing and `resume` refuse these files by name. That is as it should be
for users, but here it would hide what is to be seen. So the copies that are tested have the digest
of now; that `resume` refuses an old digest wants a test of its own when the scheme has changed.

A task that is a user's file will no longer be loaded from the path on record: `audit` of
prisoners_dilemma and poem then wants `--task`, for which AUDITED has room.
"""

import csv
import io
import json
import math
import re
import shutil
import sqlite3
import sys
from contextlib import closing, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from parley import resume
from parley.cli import main
from parley.errors import ReplayError
from parley.store.sqlite import run_writer

FOLDER = Path(__file__).parent / "data" / "runs"
PARTS = """
results aspects corpus cost external guessing judges outcomes pairs partners passes positions
ratings rejudged roles rounds stability stops topics
"""
WITH_SCORES = ("kieval", "qa")  # runs that are held against scores from elsewhere
BOOTSTRAPPED = ("qa", "kieval")
AUDITED = {  # run: further words for `audit`, which never loads a file that a record names
    "prisoners_dilemma": ("--task", "prisoners_dilemma.py"),
    "poem": ("--task", "poem.yaml"),
}

# Runs whose task was changed on purpose since, in its prompts or metrics. They are shown as before,
# and their audit says that it cannot replay them.
CHANGED = ("kieval", "kieval_plain", "word_guessing")
UNREPLAYED = {"replay", "plan"}


def names():
    """The runs, by the names of their files."""
    return sorted(path.stem for path in FOLDER.glob("*.parley"))


def said(*words, cwd):
    """A command as a shell would call it: its exit code, and what it wrote to stdout as data."""
    out = io.StringIO()
    err = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["parley", *words])
        with pytest.raises(SystemExit) as end:
            main()
    text = out.getvalue()
    if text and "--json" in words:
        return {"code": end.value.code, "out": json.loads(text)}
    rows = [[number(cell) for cell in row] for row in csv.reader(io.StringIO(text))]
    return {"code": end.value.code, "out": rows}


def number(cell):
    """A cell of a table: a number where it is one."""
    try:
        return float(cell) if math.isfinite(float(cell)) else cell
    except ValueError:
        return cell


def commands(name, matches):
    """What is asked of each run."""
    file = f"{name}.parley"
    found = [("show", file, "--json"), ("report", file, "--json")]
    found.append(("audit", file, "--json", *AUDITED.get(name, ())))
    found += [("show", file, str(match), "--json") for match in sorted({1, matches})]
    found += [("show", file, "--part", part, "--format", "csv") for part in PARTS.split()]
    if name in WITH_SCORES:
        found.append(("show", file, "--scores", "scores.csv", "--json"))
        found.append(("show", file, "--part", "external", *found[-1][2:4], "--format", "csv"))
    if name in BOOTSTRAPPED:
        found.append(("show", file, "--interval", "bootstrap", "--json"))
    return found


def said_of(name, folder):
    """All that the commands say of a run."""
    with closing(sqlite3.connect(f"file:{folder / name}.parley?mode=ro", uri=True)) as connection:
        (matches,) = connection.execute("SELECT MAX(number) FROM matches").fetchone()
    return {" ".join(words): said(*words, cwd=folder) for words in commands(name, matches)}


def said_of_all(folder):
    """What the commands say of several runs together."""
    models = "--reference good --reference fair --without weak --control weak=good"
    several = ["kieval.parley", "qa.parley", "--scores", "others.csv", *models.split(), "--json"]
    listed = said("ls", "--store", ".", "--json", cwd=folder)
    listed["out"].sort(key=lambda facts: facts["id"])
    return {"ls": listed, "report": said("report", *several, cwd=folder)}


def apart(kept, found, at=""):
    """Where two accounts differ, and what each says there; the last digits may differ."""
    if isinstance(kept, dict) and isinstance(found, dict):
        return [
            place
            for key in sorted(kept.keys() | found.keys())
            for place in apart(kept.get(key, "nothing"), found.get(key, "nothing"), f"{at}/{key}")
        ]
    if isinstance(kept, list) and isinstance(found, list) and len(kept) == len(found):
        pairs = enumerate(zip(kept, found, strict=True))
        return [place for n, pair in pairs for place in apart(*pair, f"{at}/{n}")]
    if isinstance(kept, float) or isinstance(found, float):
        numbers = all(isinstance(each, int | float) for each in (kept, found))
        same = numbers and math.isclose(kept, found, rel_tol=1e-9, abs_tol=1e-12)
    else:
        same = type(kept) is type(found) and kept == found
    return [] if same else [f"{at}: was {str(kept)[:200]!r}, is {str(found)[:200]!r}"]


# Sentences that have new words since; their numbers are as before.
REWORDED = {
    r"(\d+) match had not ended, and cannot be played again": (
        r"\1 unfinished match was not replayed"
    ),
    r"(\d+) matches had not ended, and cannot be played again": (
        r"\1 unfinished matches were not replayed"
    ),
    r"balance was not checked: ": "the check `balance` was not made, because ",
    r"verdicts on (.*) are taken from the record: no program was run again": (
        r"verdicts on \1 were not verified: the audit does not run programs again"
    ),
    r" the seats of (\w+) began with different words: .* sat in each": (
        r", the seats of role `\1` had different opening prompts, because the task assigns "
        "prompts by position. This is fair if every model held every position equally often (see "
        "the check `balance`)"
    ),
    r"who plays in a race is decided by its plan, which was checked": (
        "in a race, the plan decides which models play, and the plan was checked"
    ),
    r"judged again: what contestants said is that of (.*), which has an audit of its own": (
        r"this run rejudges \1: the replies of contestants come from that run, so audit "
        r"that run, too"
    ),
    r"what models wrote was run without isolation; a program can have changed this record too": (
        "model-written code ran without a sandbox, so a program could have changed this record"
    ),
    r"looked for questions that instruments are sure of: no model is measured by it": (
        "only screened questions for another run, so it has no scores and is left out"
    ),
    r"stopped by what it saw: its intervals hold at every look \((.*)\), and are wider": (
        r"stopped depending on its scores (sequential stopping), so its intervals are "
        r"anytime-valid (\1) and wider than those of a run with a fixed number of matches"
    ),
    r"the process ended without a word": "the process was killed or crashed",
    r"is not complete: (.*)$": r"is not finished (\1), so its scores may still change",
    r"still played": "still being played",
    r"^(.*): accuracies do not all come from the same source": (
        r"the accuracies on \1 come from different sources, so they may not be comparable"
    ),
    r"no verdict: (\d+) (models(?: of the reference set)?) with accuracy and score, at .* needed": (
        r"no verdict, because only \1 \2 have both accuracy and score; at least 4 are needed"
    ),
    r"\bmodels of the reference set\b": "reference models",
    r"line of (\d+) declared reference models, leave-one-out studentised residuals, Student's t": (
        r"the line is fitted to the \1 reference models that you named; p-values from "
        r"leave-one-out studentised residuals and Student's t"
    ),
    r"no reference set: repeated median line, groups of .* trimmed, p by drawing honest models": (
        "without reference models, the line is a repeated median line that ignores groups of up to "
        "a third of the models; p-values by simulating honest models"
    ),
    r"one-sided; datasets combined by Cauchy's distribution": (
        "the tests are one-sided; datasets are combined with the Cauchy combination test"
    ),
    r"(worth a look: p ≤ [\d.]+) before it": r"\1 before the correction",
}


def kept(name):
    """What was said of a run, with the words of now."""
    text = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    return reworded(json.loads(text))


def reworded(value):
    if isinstance(value, str):
        for old, new in REWORDED.items():
            value = re.sub(old, new, value)
        return value
    if isinstance(value, dict):
        return {key: reworded(each) for key, each in value.items()}
    return [reworded(each) for each in value] if isinstance(value, list) else value


BEGUN = """
public_goods -m bot/null -m bot/random
idiom_solitaire -m bot/speaker -m bot/null --set dictionary=idioms.txt
code_review -m a=bot/coder -m b=bot/coder --dataset samples --unsafe-run-code-without-isolation
translation -m a=bot/null -m b=bot/null --dataset samples
kieval -m a=bot/null --role interactor=a --role evaluator=a --set verify=no --dataset samples
word_guessing -m a=bot/null -m b=bot/null --dataset samples
qa -m a=bot/null --dataset samples
prisoners_dilemma.py -m a=bot/null -m b=bot/null
poem.yaml -m a=bot/null -m b=bot/null --role judge=bot/judge
"""


@cache
def rules():
    """The digest of each task's rule as it is now, from runs that begin and may ask nobody."""
    with TemporaryDirectory() as name:
        place = copied(Path(name))
        for words in BEGUN.strip().splitlines():
            begun = f"run {words} --items 1" if "--dataset" in words else f"run {words}"
            said(*begun.split(), "--max-calls", "0", "--store", "begun", cwd=place)
        begun = [identified(path) for path in (place / "begun").glob("*.parley")]
    assert len(begun) == 9
    return {identity["task"]: identity["rule"] for identity in begun}


def copied(place):
    """A folder with a copy of all runs, and of what they were played with."""
    for path in FOLDER.iterdir():
        if path.is_file() and path.suffix != ".json":
            shutil.copy(path, place)
    return place


def identified(path, rules=None):
    """What a record says that it depends on; with the rules of now, where they are given."""
    with closing(sqlite3.connect(path)) as connection:
        (text,) = connection.execute("SELECT identity FROM runs").fetchone()
        identity = json.loads(text)
        if rules and identity["rule"] != rules[identity["task"]]:
            identity["rule"] = rules[identity["task"]]
            connection.execute("UPDATE runs SET identity = ?", (json.dumps(identity),))
            connection.commit()
    return identity


def brought_up_to_date(place):
    """A copy of all runs, which say that they were played by the rules of now.

    A rule's digest changes with every import that is moved, and then an audit replays nothing. So
    the digest is replaced, and the replay itself shows whether the rule is the same.
    """
    copied(place)
    for name in names():
        identified(place / f"{name}.parley", rules())
    return place


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs to be read; what is to be changed is copied once more."""
    return brought_up_to_date(tmp_path_factory.mktemp("runs"))


def test_every_run_has_what_was_said_of_it():
    assert len(names()) == 22
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == sorted([*names(), "store"])


MOVED = {"corpus": [], "guessing": None, "stops": []}  # and what stood there in other tasks


SHARES = {  # of word guessing's matches: what they are called now, and were called before
    "not both words were guessed in two rounds": "took more than two rounds",
    "not both words were guessed in two rounds, and both were guessed later": (
        "of these, both words guessed"
    ),
    "both words were guessed": "of all, both words guessed",
}
NEW_SHARES = "a third round was played"


def without_counted_violations(out):
    """A document without the number of violations: every attempt counted as one before."""
    if isinstance(out, dict):
        about = {"violations", "metric"} <= out.keys()
        found = {
            key: without_counted_violations(value)
            for key, value in out.items()
            if not (about and key == "violations")
        }
        if {"alias", "kind", "count", "attempts"} <= found.keys():
            found["count"] = found.pop("attempts")
        return found
    if isinstance(out, list) and out and isinstance(out[0], list) and "violations" in out[0]:
        at = out[0].index("violations")
        return [[*row[:at], *row[at + 1 :]] for row in out]
    return [without_counted_violations(each) for each in out] if isinstance(out, list) else out


def as_before(out):
    """A result with the parts of tasks where they stood before: among those of all runs; shares of
    word guessing by their names of before."""
    if isinstance(out, list) and all(isinstance(row, list) for row in out):
        out[:] = [
            [SHARES.get(cell, cell) for cell in row]
            for row in out
            if not str(row[1:2]).startswith(f"['{NEW_SHARES}")
        ]
        if out and out[0][-1:] == ["defaulted"]:  # new; the last column
            out[:] = [row[:-1] for row in out]
        if out and out[0][-2:] == ["stage", "arm"]:  # of runs that evolve
            assert all(row[-2:] == ["0", ""] for row in out[1:])
            out[:] = [row[:-2] for row in out]
        return out
    if isinstance(out, dict) and out.get("schema") == "parley.result/1":
        own = {name.rpartition(".")[2]: part for name, part in out.pop("parts").items()}
        out |= {name: own.get(name, empty) for name, empty in MOVED.items()}
        if out["guessing"]:
            kept = [each for each in out["guessing"]["matches"] if each["what"] in SHARES]
            out["guessing"]["matches"] = [{**each, "what": SHARES[each["what"]]} for each in kept]
        del out["identical"]  # new; what follows from it stands in the files beside the runs
        assert out.pop("shown") is None  # of runs that evolve
        assert out.pop("evolve") is None
        out.pop("efficiency")  # new: scores beside their cost and latency
        out.pop("devices")  # new: the time of devices
        out.pop("resolved_pairs")  # new: what a resolved pair cost
        assert out["run"].pop("open_waves") == []  # new: batches whose replies are not on record
        assert out["run"].pop("workers") is None  # new: one process played it
        (out["judges"] or {}).pop("models", None)  # new: the means behind the correlations
        for row in out["results"]:
            del row["defaulted"]  # new as well
    if isinstance(out, dict) and "recalled" in out:  # a match; new for runs that evolve
        assert (out.pop("stage"), out.pop("arm"), out.pop("recalled")) == (0, "", [])
        assert out.pop("people_verdicts") == []
    if isinstance(out, dict) and out.get("schema") == "parley.report/1":
        out.pop("human", None)  # new: what people said
    for result in out.get("results", []) if isinstance(out, dict) else ():
        as_before(result)  # a report holds whole results
    return out


@pytest.mark.parametrize("name", names())
def test_an_old_run_reads_as_it_did(name, folder):
    before, now = kept(name), said_of(name, folder)
    for each in now.values():
        as_before(each["out"])
    if name not in ("kieval", "kieval_plain"):  # `aspects` is a part of KIEval now
        del before[f"show {name}.parley --part aspects --format csv"]
        assert now.pop(f"show {name}.parley --part aspects --format csv")["out"] == [[]]
    audit = f"audit {name}.parley --json"
    old, new = before.pop(audit)["out"], now.pop(" ".join((audit, *AUDITED.get(name, ()))))["out"]
    assert apart(without_counted_violations(before), without_counted_violations(now)) == []
    # An audit may say more than it did: that the rule's digest has another scheme, say.
    assert apart(old["breaches"], new["breaches"]) == []
    assert apart(old["masked"], new["masked"]) == []
    assert new["matches"] == old["matches"]
    missing = UNREPLAYED if name in CHANGED else set()
    assert missing <= set(new["unchecked"])
    kept_checks = {check: n for check, n in old["checked"].items() if check not in missing}
    assert {check: new["checked"].get(check) for check in kept_checks} == kept_checks
    assert set(old["cautions"]) <= set(new["cautions"])


def test_several_old_runs_read_as_they_did(folder):
    now = said_of_all(folder)
    as_before(now["report"]["out"])
    for facts in now["ls"]["out"]:
        assert facts.pop("workers") is None  # new: one process played it
    assert apart(without_counted_violations(kept("store")), without_counted_violations(now)) == []


ENDED = "SELECT COUNT(*) FROM matches WHERE state IN ('done', 'aborted')"


def test_every_match_that_ended_was_replayed():
    """No breach, and every match that has ended was played again from its replies alone."""
    replayed = 0
    for name in names():
        found = kept(name)[f"audit {name}.parley --json"]
        assert (found["code"], found["out"]["breaches"]) == (0, []), name
        file = f"file:{FOLDER / name}.parley?mode=ro&immutable=1"
        with closing(sqlite3.connect(file, uri=True)) as connection:
            (ended,) = connection.execute(ENDED).fetchone()
        assert found["out"]["checked"]["replay"] == ended, name
        replayed += ended
    assert replayed > 250


LAST = "SELECT MAX(id) FROM calls WHERE match = 1 AND attempt = 0"
PLANTED = {
    "a score": ("UPDATE scores SET value = value * 0.5 + 0.25 WHERE match = 1", "replay"),
    "a missing score": ("DELETE FROM scores WHERE match = 1", "replay"),
    "a reply": (f"UPDATE calls SET content = 'no' WHERE id = ({LAST} AND round = 1)", "shown"),
    "what a seat saw": (f"UPDATE calls SET saw = zeroblob(16) WHERE id = ({LAST})", "shown"),
    "the end of a match": ("UPDATE matches SET rounds = rounds + 1 WHERE number = 1", "replay"),
}


TASKS = ["public_goods", "translation", "kieval", "code_review", "word_guessing", "poem"]
PLAYED_ANEW = {  # by tasks that have changed since their old run was played
    "kieval": """run kieval -m good=bot/candidate -m weak=bot/imitator --role
        interactor=bot/interactor --role evaluator=bot/evaluator --set rounds=2 --set verify=no
        --dataset samples --items 2 --seed 8""",
    "word_guessing": """run word_guessing -m a=bot/guesser -m b=bot/guesser --set rounds=2
        --dataset samples --items 2 --seed 9""",
}


@pytest.mark.parametrize("name", TASKS)
def test_the_audit_finds_what_was_changed(name, folder, tmp_path):
    """A replay compares scores and views, else that it finds no breach would mean nothing."""
    run = folder / f"{name}.parley"
    if name in PLAYED_ANEW:
        said(*PLAYED_ANEW[name].split(), "--store", str(tmp_path / "anew"), cwd=folder)
        (run,) = (tmp_path / "anew").glob("*.parley")
    for what, (change, kind) in PLANTED.items():
        file = str(tmp_path / f"{what}.parley")
        shutil.copy(run, file)
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute(change).rowcount, what
            connection.commit()
        found = said("audit", file, "--json", *AUDITED.get(name, ()), cwd=folder)
        assert found["code"] == 5, what
        assert kind in {breach["kind"] for breach in found["out"]["breaches"]}, what


def recorded(path):
    """Every call on record by its id, with all columns that the file has."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return {row["id"]: dict(row) for row in connection.execute("SELECT * FROM calls")}


STOPPED = [("killed", (), 48), ("budget", ("--max-calls", "100"), 36)]


@pytest.mark.parametrize(("name", "words", "calls"), STOPPED)
def test_an_old_run_goes_on_where_it_stopped(name, words, calls, folder, tmp_path, monkeypatch):
    """With the digest of now; as they are, the files may be refused by then, which is right."""
    monkeypatch.setattr(run_writer, "STALE", 1.0)  # the file is of another machine
    path = tmp_path / f"{name}.parley"
    shutil.copy(folder / path.name, path)
    before = recorded(path)
    assert len(before) < calls
    done = said("resume", path.name, *words, "--json", cwd=tmp_path)
    assert (done["code"], done["out"]["run"]["state"]) == (0, "done")
    now = recorded(path)
    # no reply on record was asked for again, or changed; the file may have new columns now
    assert all(call.items() <= now[id].items() for id, call in before.items())
    assert len(now) == calls  # and none was asked for twice
    found = said("audit", path.name, "--json", cwd=tmp_path)
    assert (found["code"], found["out"]["breaches"]) == (0, [])


def test_an_old_run_whose_rule_cannot_be_compared_is_not_resumed(tmp_path):
    """Its digest was made in another way, so that nobody can say whether the rule is the same."""
    shutil.copy(FOLDER / "killed.parley", tmp_path)
    with pytest.raises(ReplayError, match="the rule of the task `public_goods` in a different"):
        resume(tmp_path / "killed.parley")
