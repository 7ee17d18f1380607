"""The secret behind the marks of quotations: each run has its own, keeps it, and shows it to
nobody."""

import re
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass

import pytest

import parley
from parley import Metric, Role, Task
from parley.audit.audit import audit_run
from parley.errors import StoreError
from parley.participants.bot import Bot
from parley.rules.bot_view import BotView
from parley.rules.quotations import derive_match_key
from parley.store import find_run, open_store, read_run
from parley.testing import fix_quotation_secret
from parley.web.app import make_app, make_site
from parley.web.safety import Safety
from tests.cli.test_cli import parley as command
from tests.resealed import reseal
from tests.runs.shared import create, prepare, serve_together

MARK = re.compile(r"\[([0-9a-f]{12}): ")
JUDGED = {
    "dataset": "samples",
    "items": 2,
    "roles": {"judge": ["bot/judge"]},
    "seed": 7,
}
MODELS = {"good": "bot/translator", "weak": "bot/null"}


def translate(store, **options):
    return parley.run("translation", MODELS, store=store, **{**JUDGED, **options})


def secret_of(ref):
    with read_run(ref) as reader:
        return reader.run.quotation_secret()


def marks_of(ref):
    """The marks that each match has shown."""
    with read_run(ref) as reader:
        return {
            row.number: {
                mark
                for message in reader.messages.of(row.number)
                if message["kind"] != "reply"
                for mark in MARK.findall(message["content"])
            }
            for row in reader.matches.read()
        }


def test_two_runs_with_the_same_seed_differ_in_their_marks_alone(tmp_path):
    refs = [translate(tmp_path / name).ref for name in ("one", "two")]
    one, two = (set().union(*marks_of(ref).values()) for ref in refs)
    assert one
    assert not one & two
    assert secret_of(refs[0]) != secret_of(refs[1])
    told = []
    for ref in refs:
        with read_run(ref) as reader:
            rows = list(reader.matches.read())
            shown = [message for row in rows for message in reader.messages.of(row.number)]
            plain = [re.sub(r"\[/?[0-9a-f]{12}", "[", str(each["content"])) for each in shown]
            told.append(([row.spec for row in rows], plain))
    assert told[0] == told[1]


def test_no_two_matches_of_a_run_share_a_mark(tmp_path):
    """Matches of one block have the same seed, so a mark that came from it would be known."""
    found = marks_of(translate(tmp_path, repeats=2).ref)
    assert len(found) == 8
    assert all(found.values())
    assert max(Counter(mark for marks in found.values() for mark in marks).values()) == 1


def test_a_resumed_run_keeps_its_secret(tmp_path):
    ref = translate(tmp_path, max_calls=4).ref
    before, shown = secret_of(ref), marks_of(ref)
    again = parley.resume(ref.location, max_calls=100)
    assert again.state == "done"
    assert secret_of(ref) == before
    after = marks_of(ref)
    assert all(shown[number] <= after[number] for number in shown)
    assert len(after) > 3
    assert audit_run(ref).breaches == []


def test_a_rejudged_run_keeps_the_secret_of_its_origin(tmp_path):
    ref = translate(tmp_path).ref
    again = parley.rejudge(ref.location, roles={"judge": ["bot/random"]}, store=tmp_path).ref
    third = parley.rejudge(again.location, roles={"judge": ["bot/injector"]}, store=tmp_path).ref
    assert secret_of(again) == secret_of(third) == secret_of(ref)
    for each in (ref, again, third):
        assert audit_run(each).breaches == []


def test_a_run_that_moves_keeps_its_secret(tmp_path):
    ref = translate(tmp_path / "here").ref
    there = open_store(tmp_path / "there")
    file = tmp_path / "moved.parley"
    open_store(tmp_path / "here").export_run(ref, file, False, lambda said: None)
    moved = there.import_run(file, lambda said: None)
    assert secret_of(moved) == secret_of(ref)
    assert audit_run(moved).breaches == []


def test_all_workers_of_a_run_use_its_secret(postgres_url):
    given = {
        "task": "translation",
        "models": MODELS,
        "instruments": {"judge": "bot/judge"},
        "dataset": "samples",
        "items": 3,
    }
    refs = [create(prepare(**given), postgres_url) for _ in range(2)]
    for ref in refs:
        serve_together(ref)
        assert audit_run(ref).breaches == []
    assert secret_of(refs[0]) != secret_of(refs[1])
    one, two = (set().union(*marks_of(ref).values()) for ref in refs)
    assert one
    assert not one & two


def test_golden_files_of_whole_runs_can_have_fixed_marks(tmp_path):
    with fix_quotation_secret():
        one, two = (marks_of(translate(tmp_path / name).ref) for name in ("one", "two"))
    three = marks_of(translate(tmp_path / "three").ref)
    assert one == two
    assert not set().union(*one.values()) & set().union(*three.values())


@dataclass(frozen=True)
class Quoting(Task):
    """A task that quotes something before anybody has replied."""

    roles = {"players": Role(2)}

    async def play(self, referee, players):
        text = referee.quote("Somebody was here.", "A guest")
        await referee.ask(players, f"Read this:\n{text}")
        return dict.fromkeys(players, 1.0)

    def metrics(self, seats):
        return [Metric("points", 0, 1, epsilon=1)]


def test_a_task_may_quote_before_anybody_has_replied(tmp_path):
    models = {name: lambda view: "Fine." for name in ("a", "b", "c")}
    ref = parley.run(Quoting(), models, store=tmp_path, repeats=2).ref
    assert audit_run(ref, task=Quoting).breaches == []


def change_secret(ref, secret, sealed_anew=True):
    """Write another secret into a run's file; `sealed_anew`: with the digests that fit it."""
    with closing(sqlite3.connect(ref.path, isolation_level=None)) as connection:
        connection.execute("UPDATE runs SET quotation_secret = ?", (secret,))
        if sealed_anew:
            reseal(connection)


@pytest.mark.parametrize("sealed_anew", [True, False])
def test_the_audit_finds_a_changed_secret_and_does_not_show_it(tmp_path, sealed_anew):
    ref = translate(tmp_path).ref
    secret = secret_of(ref)
    change_secret(ref, "00" * 16, sealed_anew)
    found = audit_run(ref).breaches
    assert {breach.kind for breach in found} == {"replay", *(() if sealed_anew else ("digest",))}
    assert not [breach for breach in found if secret in breach.detail]


@pytest.mark.parametrize("damaged", ["", "not a secret", "AB" * 16, b"\xff" * 16, 7])
def test_a_damaged_secret_is_said_to_be_damaged_and_not_shown(tmp_path, damaged):
    ref = translate(tmp_path).ref
    change_secret(ref, damaged)
    with pytest.raises(StoreError, match="must be 32 hexadecimal digits") as wrong:
        secret_of(ref)
    assert not damaged or str(damaged) not in str(wrong.value).replace(ref.location, "")


def test_no_bot_and_no_function_is_given_the_secret(tmp_path, monkeypatch):
    """Nothing that can be reached from what a participant is called with holds it."""
    seen = []

    def remember(view):
        seen.append(view)
        return "Fine."

    reply = Bot.reply

    async def look(self, view, call):
        seen.append(BotView(view, view.bot_knowledge.task, view.bot_knowledge.item, None))
        seen.append(view.bot_knowledge)
        return await reply(self, view, call)

    monkeypatch.setattr(Bot, "reply", look)
    models = {"a": remember, "b": "bot/translator"}
    ref = parley.run("translation", models, store=tmp_path, **JUDGED).ref
    secret = secret_of(ref)
    hidden = {secret, *(derive_match_key(secret, number) for number in marks_of(ref))}
    hidden |= {bytes.fromhex(secret)}
    assert len(seen) > 8
    assert not [each for view in seen for each in reachable(view) if each in hidden]


def reachable(thing):
    """All texts that can be reached from an object by its attributes and contents."""
    found, todo, known = set(), [thing], set()
    while todo:
        each = todo.pop()
        if id(each) in known or isinstance(each, type) or callable(each):
            continue
        known.add(id(each))
        if isinstance(each, str | bytes):
            found.add(each)
        elif isinstance(each, dict):
            todo += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple | set | frozenset):
            todo += each
        todo += getattr(each, "__dict__", {}).values()
        for kind in type(each).__mro__:
            names = getattr(kind, "__slots__", ())
            names = [names] if isinstance(names, str) else names
            todo += [getattr(each, name) for name in names if hasattr(each, name)]
    return found


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """The hidden texts of a run, and everything that the commands and pages say of it."""
    folder = tmp_path_factory.mktemp("said")
    run = ["run", "translation", "-m", "good=bot/translator", "-m", "weak=bot/null"]
    run += ["--role", "judge=bot/judge", "--dataset", "samples", "--items", 2]
    done = [command(*run, "--name", "first", cwd=folder)]
    done.append(command(*run, "--name", "second", "--json", cwd=folder))
    ref = find_run("first", str(folder / "runs"))
    others = [
        ("show", "first"),
        ("show", "first", "--json"),
        ("show", "first", "--format", "csv"),
        ("show", "first", "--metrics", "all"),
        ("show", "first", "--matches"),
        ("show", "first", "--matches", "--json"),
        ("show", "first", "--matches", "--format", "csv"),
        ("show", "first", "1"),
        ("show", "first", "1", "--json"),
        ("show", "first", "1", "--seat", "judge"),
        ("ls",),
        ("ls", "--json"),
        ("audit", "first"),
        ("audit", "first", "--json"),
        ("report", "first", "second"),
        ("report", "first", "--json"),
        ("report", "first", "-o", "report.html", "--matches", "8"),
        ("export", "first", "-o", "first.parley"),
        ("resume", "first"),
        ("rejudge", "first", "--role", "judge=bot/random", "--name", "third"),
        ("rejudge", "first", "--role", "judge=bot/null", "--json"),
        ("run", "translation", "-m", "x=bot/null", "--dry-run", "--dataset", "samples"),
    ]
    done += [command(*words, cwd=folder, code=None) for words in others]
    texts = [each.out + each.err for each in done]
    texts.append((folder / "report.html").read_text(encoding="utf-8"))
    shutil.copy(ref.path, folder / "broken.parley")
    with closing(sqlite3.connect(folder / "broken.parley")) as connection:
        connection.execute("UPDATE runs SET identity = '[]'")
        connection.commit()
    for words in (("show", "broken.parley"), ("audit", "broken.parley")):
        failed = command(*words, "--traceback", cwd=folder, code=None)
        texts.append(failed.out + failed.err)
    from starlette.testclient import TestClient

    app = make_app(make_site(open_store(folder / "runs")), Safety(frozenset({"localhost"})))
    client = TestClient(app, base_url="http://localhost")
    todo, visited = ["/"], set()
    while todo:
        address = todo.pop()
        if address in visited or len(visited) > 60:
            continue
        visited.add(address)
        page = client.get(address)
        texts.append(page.text + str(page.headers))
        todo += re.findall(r'href="(/[^"#]*)"', page.text)
    assert len(visited) > 5
    secret = secret_of(ref)
    keys = [derive_match_key(secret, number).hex() for number in marks_of(ref)]
    return [secret, *keys], texts


def test_no_output_shows_the_secret(said):
    hidden, texts = said
    assert sum(MARK.search(text) is not None for text in texts) >= 3  # transcripts are among them
    assert sum(len(text) for text in texts) > 100_000
    for text in texts:
        low = text.lower()
        assert not [each for each in hidden if each in low]
