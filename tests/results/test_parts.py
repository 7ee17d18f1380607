"""Parts: a task's own analyses, from one file and from a package; notes; what is stored; the
schema."""

import json
import os
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from textwrap import dedent

import fastjsonschema
import pytest

import parley
from parley import (
    Bar,
    Bars,
    Lines,
    Metric,
    Note,
    Part,
    Result,
    Role,
    Seat,
    Table,
    Task,
    TaskError,
    Votes,
)
from parley.audit.audit import audit_run
from parley.config.task_catalogue import task_class
from parley.results.part import declared_parts, general_parts, parts_of_task
from parley.results.parts_to_store import make_stored_parts
from parley.results.types import ResultHead, as_json, json_schema
from parley.rules.notes import Vote
from parley.testing.by_hand import ByHand
from tests.cli.test_cli import parley as command
from tests.test_recorded_runs import FOLDER

EXAMPLE = Path(__file__).parents[2] / "examples" / "stag_hunt.py"
BOTS = ["-m", "bot/trusting", "-m", "bot/careful", "--repeats", "2"]


@pytest.fixture
def hunt(tmp_path):
    """A run of the example, whose file is not where it was played any more."""
    (tmp_path / "game.py").write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    command("run", "./game.py", *BOTS, "--name", "hunt", cwd=tmp_path)
    (tmp_path / "game.py").unlink()
    return tmp_path


def test_a_game_in_one_file_brings_a_part_a_table_and_a_figure(tmp_path):
    result = parley.run(
        str(EXAMPLE), ["bot/trusting", "bot/careful"], repeats=2, store=tmp_path / "runs"
    )
    rows = {(row.alias, row.round): row.stag for row in result.part("trust")}
    assert rows["trusting", 1].share == 1
    assert rows["careful", 5].share == 0
    assert rows["careful", 5].blocks == 2
    assert "hunted the stag" in result.render("text", "trust")
    assert "alias" in result.render("csv", "trust")
    (lines,) = result.figures("trust")
    assert [series.label for series in lines.series] == ["careful", "trusting"]
    assert result.data["parts"]["stag_hunt.trust"][0]["alias"] == "careful"
    page = result.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Share that hunts the stag" in page


def test_what_a_part_computed_is_shown_where_its_task_is_not_installed(hunt):
    shown = command("show", "hunt", "--part", "trust", cwd=hunt).out
    assert "stag_share" in shown
    assert "stored with the run by the task `stag_hunt`" in shown
    assert "no digest covers them" in shown
    rows = command("show", "hunt", "--part", "trust", "--format", "csv", cwd=hunt).out
    assert rows.startswith("alias,round,stag_count")
    data = command("show", "hunt", "--json", cwd=hunt).json
    assert data["parts"]["stag_hunt.trust"][0]["round"] == 1
    command("report", "hunt", "-o", "r.html", cwd=hunt)
    page = (hunt / "r.html").read_text(encoding="utf-8")
    assert "Share that hunts the stag" in page
    assert "trust (as stored in the file)" in page
    said = command("audit", "hunt", cwd=hunt, code=None)
    assert "no digest covers the stored results of stag_hunt.trust" in (said.out + said.err)


def test_a_run_never_chooses_the_code_that_shows_it(hunt):
    """A file that stands where the record says the task is, is not loaded."""
    (hunt / "game.py").write_text("raise SystemExit('this file was run')", encoding="utf-8")
    assert "food" in command("show", "hunt", cwd=hunt).out
    assert "stag_share" in command("show", "hunt", "--part", "trust", cwd=hunt).out
    command("report", "hunt", cwd=hunt)


def test_the_task_can_be_given_by_its_file(hunt):
    shown = command("show", "hunt", "--part", "trust", "--task", str(EXAMPLE), cwd=hunt).out
    assert "hunted the stag" in shown


def test_a_game_that_is_a_package_keeps_its_parts_in_its_analysis_module(tmp_path, monkeypatch):
    source = EXAMPLE.read_text(encoding="utf-8")
    folder = tmp_path / "hunting"
    folder.mkdir()
    (folder / "__init__.py").write_text("from hunting.rule import StagHunt\n")
    begin, end = source.index("    parts = ("), source.index("    async def play")
    rule = source[:begin] + source[end:]
    (folder / "rule.py").write_text(rule)
    names = "TrustRow, count_trust, trust_lines, trust_table"
    (folder / "analysis.py").write_text(
        dedent(f"""
        from parley import Part
        from hunting.rule import {names}
        PARTS = (
            Part("trust", "Trust", tuple[TrustRow, ...], count_trust, tables=trust_table,
                 figures=trust_lines),
        )
        """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    hunting = __import__("hunting")
    result = parley.run(
        hunting.StagHunt(), ["bot/trusting", "bot/careful"], repeats=2, store=tmp_path / "runs"
    )
    assert result.part("trust")[0].alias == "careful"
    for name in [name for name in sys.modules if name.startswith("hunting")]:
        monkeypatch.delitem(sys.modules, name)


@dataclass(frozen=True)
class Scribe(Task):
    """Writes down what other tasks' analyses once read by its name."""

    roles = {"players": Role(2)}

    async def play(self, referee, players):
        said = await referee.ask(players, "Say something.")
        referee.note(guessing=3, evaluated=3, votes=3, overlap=3, end=3, chain=3, first=1, stop=2)
        return {player: float(len(said[player])) for player in players}

    def metrics(self, seats):
        return [Metric("letters", 0, 1000, epsilon=1), Metric("judge", 1, 10, 1, judged=True)]


def test_free_notes_are_read_by_no_analysis(tmp_path):
    """A task that writes `guessing=3` played to its end, and then had no result at all."""
    result = parley.run(Scribe(), {"a": lambda view: "x", "b": lambda view: "xy"}, store=tmp_path)
    assert result.data["run"]["state"] == "done"
    assert [row["mean"] for row in result.data["results"][:2]] == [1, 2]


@dataclass(frozen=True)
class Broken(Scribe):
    """Has a part that fails."""

    parts = (Part("broken", "Broken", tuple[Vote, ...], lambda run: 1 / 0, tables=lambda f, s: []),)


def test_a_part_that_fails_is_named_and_leaves_the_result(tmp_path):
    result = parley.run(Broken(), {"a": lambda view: "x", "b": lambda view: "xy"}, store=tmp_path)
    assert [row["mean"] for row in result.data["results"][:2]] == [1, 2]
    assert "part `broken` of the result could not be computed: ZeroDivisionError" in "\n".join(
        result.remarks()
    )
    for form in ("text", "csv"):
        with pytest.raises(
            parley.ParleyError, match="part `broken` of the result could not be computed"
        ):
            result.render(form, "broken")


@dataclass(frozen=True)
class BadlyDrawn(Scribe):
    """Has parts whose table, rows or figure fail, and one that reads a note that does not fit."""

    parts = tuple(
        Part(
            f"bad_{name}",
            name,
            tuple[Vote, ...],
            lambda run: (Vote(1),),
            **{"tables": lambda f, s: [], name: fail},
        )
        for name, fail in {
            "tables": lambda found, style: 1 / 0,
            "figures": lambda found, style: 1 / 0,
            "rows": lambda found: 1 / 0,
            "words": lambda found, style: 1 / 0,
        }.items()
    ) + (
        Part(
            "misread",
            "x",
            tuple[Vote, ...],
            lambda run: list(run.notes(Votes)) and 1 / 0,
            tables=lambda f, s: [],
        ),
    )


def test_a_part_that_cannot_be_shown_does_not_cost_the_result(tmp_path):
    result = parley.run(BadlyDrawn(), {"a": lambda v: "x", "b": lambda v: "xy"}, store=tmp_path)
    assert result.data["run"]["state"] == "done"
    result.report(tmp_path / "page.html")
    for name, form in (("bad_tables", "text"), ("bad_words", "text"), ("bad_rows", "csv")):
        with pytest.raises(
            parley.ParleyError, match=f"part `{name}` of the result could not be computed"
        ):
            Result(result.path, task=BadlyDrawn).render(form, name)


ONE_TABLE = Table(["a"], [["1"]])


@dataclass(frozen=True)
class Introduced(Scribe):
    """Has a part with words before its table, whose JSON is less than what its table needs."""

    parts = (
        Part(
            "introduced",
            "Introduced",
            tuple[Vote, ...],
            lambda run: {"votes": (Vote(1),), "said": "One `vote` <b>in all</b>."},
            tables=lambda found, style: [ONE_TABLE],
            rows=lambda found: [{"score": vote.score} for vote in found["votes"]],
            words=lambda found, style: found["said"],
            data=lambda found: as_json(found["votes"]),
        ),
    )


def test_words_stand_before_the_tables_of_a_part_and_json_has_its_data(tmp_path):
    models = {"a": lambda v: "x", "b": lambda v: "xy"}
    result = parley.run(Introduced(), models, store=tmp_path)
    lines = result.render(part="introduced").splitlines()
    assert lines[:3] == ["One `vote` <b>in all</b>.", "", "a"]
    assert [vote["score"] for vote in result.data["parts"]["scribe.introduced"]] == [1]
    assert Result(result.ref).data["parts"] == result.data["parts"]  # as it was stored
    page = result.report(tmp_path / "page.html", audit=False).read_text(encoding="utf-8")
    assert "One <code>vote</code> &lt;b&gt;in all&lt;/b&gt;.</p>" in page


def raise_escape(run):
    raise ValueError("\x1b[31m")


@dataclass(frozen=True)
class Steering(Scribe):
    """Has parts whose words, and whose error, have characters that steer a terminal."""

    parts = (
        Part(
            "worded",
            "Worded",
            tuple[Vote, ...],
            lambda run: (Vote(1),),
            tables=lambda found, style: [ONE_TABLE],
            words=lambda found, style: "red \x1b[31m \u202e",
        ),
        Part("failed", "Failed", tuple[Vote, ...], raise_escape, tables=lambda f, s: []),
    )


def test_words_and_errors_of_a_part_cannot_steer_a_terminal(tmp_path):
    models = {"a": lambda v: "x", "b": lambda v: "xy"}
    result = parley.run(Steering(), models, store=tmp_path)
    for form in ("text", "markdown", "latex"):
        assert "\x1b" not in result.render(form, "worded")
        assert "\u202e" not in result.render(form, "worded")
    with pytest.raises(parley.ParleyError) as told:
        result.render("text", "failed")
    assert "\x1b" not in str(told.value)


@dataclass(frozen=True)
class Unwritable(Scribe):
    """Has a part with a figure that JSON cannot hold."""

    parts = (
        Part(
            "lost",
            "Lost",
            tuple[Vote, ...],
            lambda run: (Vote(1),),
            tables=lambda found, style: [ONE_TABLE],
            figures=lambda found, style: [
                Bars("x", "x", "x", (Bar("a", {"p": float("nan")}),)),
            ],
        ),
    )


def test_a_figure_that_cannot_be_read_back_is_not_stored(tmp_path):
    models = {"a": lambda v: "x", "b": lambda v: "xy"}
    result = parley.run(Unwritable(), models, store=tmp_path)
    assert "lost" not in Result(result.ref).stored
    assert ">Result</h2>" in Result(result.ref).report(tmp_path / "page.html").read_text("utf-8")


MISTAKES = {
    "one_table": {"tables": lambda found, style: ONE_TABLE},
    "no_table": {"tables": lambda found, style: [None]},
    "late_table": {"tables": lambda found, style: (1 / 0 for _ in "a")},
    "one_figure": {"figures": lambda found, style: Lines("x", "x", "x", "y", ())},
    "text_figure": {"figures": lambda found, style: "figure"},
    "number_rows": {"rows": lambda found: [1]},
    "number_cell": {"tables": lambda found, style: [Table(["a"], [[1]])]},
}


@dataclass(frozen=True)
class Mistaken(Scribe):
    """Has parts that return something else than they should."""

    parts = tuple(
        Part(
            name,
            name,
            tuple[Vote, ...],
            lambda run: (Vote(1),),
            **{"tables": lambda found, style: [ONE_TABLE], **wrong},
        )
        for name, wrong in MISTAKES.items()
    )


def test_a_part_that_returns_something_else_is_named(tmp_path):
    played = parley.run(Mistaken(), {"a": lambda v: "x", "b": lambda v: "xy"}, store=tmp_path)
    assert played.data["run"]["state"] == "done"
    played.report(tmp_path / "page.html")
    for name, wrong in MISTAKES.items():
        result = Result(played.path, task=Mistaken)
        if "figures" in wrong:
            assert result.figures(name) == []
            assert "expected a list of" in result.failures[name]
        else:
            with pytest.raises(
                parley.ParleyError, match=f"part `{name}` of the result could not be computed"
            ):
                result.render("csv" if "rows" in wrong else "text", name)


def test_a_table_computes_only_the_parts_that_it_speaks_of(tmp_path):
    result = parley.run("public_goods", ["bot/random", "bot/altruist"], repeats=2, store=tmp_path)
    names = {part.name for part in parts_of_task(result.task)}
    assert names == {"payoffs", "payments"}
    fresh = Result(result.path)
    fresh.render()
    assert set(fresh._computed) == {
        "results",
        "stability",
        "judges",
        "resolved_pairs",
        "rejudged",
        "cost",
    }


def test_a_run_that_ends_computes_only_the_parts_that_are_stored(tmp_path):
    played = parley.run("public_goods", ["bot/random", "bot/altruist"], repeats=2, store=tmp_path)
    result = Result(played.path, task=played.task)
    stored = make_stored_parts(result)
    assert {each.name for each in stored} == {"public_goods.payoffs", "public_goods.payments"}
    assert set(result._computed) == {"payoffs", "payments"}


@dataclass(frozen=True)
class Aside(Scribe):
    """Has a part that does not apply to any run."""

    parts = (
        Part(
            "aside",
            "Aside",
            tuple[Vote, ...],
            lambda run: 1 / 0,
            tables=lambda found, style: [],
            applies=lambda info: False,
            absent="not for this run",
        ),
    )


def test_a_part_that_does_not_apply_is_not_computed(tmp_path):
    result = parley.run(Aside(), {"a": lambda v: "x", "b": lambda v: "xy"}, store=tmp_path)
    assert result.data["parts"] == {"scribe.aside": []}
    assert result.failures == {}
    assert result.render("text", "aside") == "not for this run"


def test_parts_with_one_name_are_refused():
    def part(name):
        return Part(name, "x", tuple[Vote, ...], lambda run: (), tables=lambda f, s: [])

    kind = type("Twice", (Scribe,), {"parts": (part("a"), part("a"))})
    with pytest.raises(TaskError, match="the task has two parts named `a`"):
        parts_of_task(kind)
    assert declared_parts(Task) == ()
    with pytest.raises(TaskError, match="must contain parley"):
        declared_parts(type("Wrong", (Scribe,), {"parts": (3,)}))


def test_a_type_that_cannot_be_published_is_refused_when_the_part_is_declared():
    with pytest.raises(TaskError, match="the result of a part cannot contain"):
        Part("sets", "x", tuple[set, ...], lambda run: (), tables=lambda f, s: [Table([], [])])


def make_schema():
    """The JSON schema of `parley.result/1`: the head of a result, and its general parts."""
    schema = json_schema(ResultHead)
    for part in general_parts():
        found = json_schema(part.result)
        if part.spread:
            schema["properties"] |= found["properties"]
            schema["required"] += found["required"]
            continue
        known = found if part.is_sequence else {"anyOf": [found, {"type": "null"}]}
        schema["properties"][part.json_key] = known
        schema["required"].append(part.json_key)
    about = "results of the task's own parts, by TASK.PART"
    schema["properties"]["parts"] = {"type": "object", "description": about}
    about = "those of `parts` that were stored with the run and not recomputed"
    names = {"type": "array", "items": {"type": "string"}, "description": about}
    schema["properties"]["stored_parts"] = names
    schema["required"] += ["parts", "stored_parts"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def test_every_result_fits_the_published_schema():
    """For all tasks: the schema of `parley.result/1` is what the dataclasses say, and holds."""
    file = Path(str(files("parley.results").joinpath("result.schema.json")))
    if os.environ.get("PARLEY_UPDATE"):
        file.write_text(json.dumps(make_schema(), indent=2) + "\n", encoding="utf-8")
    published = json.loads(file.read_text(encoding="utf-8"))
    assert published == json.loads(json.dumps(make_schema()))
    validate = fastjsonschema.compile({k: v for k, v in published.items() if k != "$schema"})
    for path in sorted(FOLDER.glob("*.parley")):
        validate(json.loads(json.dumps(Result(path).data)))
    assert {part.json_key for part in general_parts() if not part.spread} <= set(
        published["required"]
    )


def test_a_note_is_read_back_as_the_type_that_was_written():
    judge, writer = Seat("judge"), Seat("writer")
    note = Votes({judge: {writer: Vote(7, 3)}, Seat("judge", 2): None})
    facts = json.loads(
        json.dumps({"votes": {"judge": {"writer": {"score": 7, "mark": 3}}, "judge.2": None}})
    )
    assert Votes.from_facts(facts) == note
    for wrong in ({}, {"votes": 3}, {"votes": {"judge": {"writer": {"score": "x"}}}}):
        with pytest.raises(ValueError, match="votes"):
            Votes.from_facts(wrong)


def test_a_note_without_a_kind_is_refused_when_its_class_is_made():
    with pytest.raises(TaskError, match="a note needs a kind"):

        class Nameless(Note):
            pass


def test_a_damaged_note_is_named_with_its_match(tmp_path):
    result = parley.run(str(EXAMPLE), ["bot/trusting", "bot/careful"], repeats=2, store=tmp_path)
    with closing(sqlite3.connect(result.path)) as connection:
        connection.execute('UPDATE notes SET facts = \'{"number": "x"}\' WHERE match = 2')
        connection.commit()
    with pytest.raises(parley.ParleyError, match="match 2: a recorded note is damaged"):
        Result(result.path, task=result.task).part("trust")


def test_a_field_with_a_default_is_not_required():
    assert json_schema(tuple[Vote, ...])["items"]["required"] == ["score"]


def test_an_audit_loads_the_task_only_from_the_file_that_is_named(hunt):
    (hunt / "game.py").write_text("raise SystemExit('this file was run')", encoding="utf-8")
    found = command("audit", "hunt", "--json", cwd=hunt).json
    assert "--task ./game.py" in found["unchecked"]["replay"]
    found = command("audit", "hunt", "--json", "--task", str(EXAMPLE), cwd=hunt).json
    assert found["breaches"] == []
    assert found["checked"]["replay"] == found["matches"]


def test_a_run_goes_on_with_its_file_only_if_the_source_is_the_same(tmp_path):
    game, words = tmp_path / "game.py", ("--max-calls", "12", "--name", "hunt")
    source = EXAMPLE.read_text(encoding="utf-8")
    game.write_text(source, encoding="utf-8")
    command("run", "./game.py", *BOTS, *words, cwd=tmp_path, code=4)
    game.write_text("raise SystemExit('this file was run')", encoding="utf-8")
    refused = command("resume", "hunt", "--max-calls", "14", cwd=tmp_path, code=2)
    assert "has changed since this run started" in refused.err
    assert "--task ./game.py" in refused.err
    game.write_text(f"# only a comment\n{source}", encoding="utf-8")
    command("resume", "hunt", "--max-calls", "14", cwd=tmp_path, code=4)
    game.write_text(source.replace("share of matches", "a better note"), encoding="utf-8")
    command("resume", "hunt", "--max-calls", "100", cwd=tmp_path, code=2)
    command("resume", "hunt", "--max-calls", "100", "--task", "./game.py", cwd=tmp_path)


@dataclass(frozen=True)
class Count(Note, kind="scribe.count"):
    """A number."""

    number: int


@pytest.mark.parametrize("number", ["three", 3.5, None, float("nan")])
def test_a_note_that_does_not_hold_what_its_class_declares_fails_where_it_is_written(number):
    hand = ByHand(Scribe())
    with pytest.raises(TaskError, match="number: expected a whole number"):
        hand.referee.note(Count(number))


@pytest.mark.parametrize(
    ("column", "text"),
    [("data", "{not json"), ("figures", '[{"kind": "lines"}]'), ("figures", '[{"kind": "pie"}]')],
)
def test_a_stored_part_that_is_damaged_is_named(hunt, column, text):
    (path,) = (hunt / "runs").glob("*.parley")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE part_results SET {column} = ?", (text,))
        connection.commit()
    result = Result(path)
    assert {"data": result.tables, "figures": result.figures}[column]("trust") == []
    with pytest.raises(parley.ParleyError, match=r"stored part `stag_hunt\.trust` is damaged"):
        result.render("text", "trust")
    page = result.report(path.with_suffix(".html"), audit=False).read_text(encoding="utf-8")
    assert "stored part `stag_hunt.trust` is damaged" in page.replace("<code>", "`").replace(
        "</code>", "`"
    )
    assert ">Result</h2>" in page


def test_a_stored_part_of_several_lists_keeps_them_apart_in_csv(hunt):
    (path,) = (hunt / "runs").glob("*.parley")
    data = json.dumps({"n": 7, "rows": [{"alias": "a", "n": 1}], "none": []})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE part_results SET data = ?", (data,))
        connection.commit()
    assert Result(path).render("csv", "trust").splitlines() == ["n,list,alias", "7,,", "1,rows,a"]


def test_a_stored_table_is_rounded_and_leaves_out_empty_columns(hunt):
    (path,) = (hunt / "runs").glob("*.parley")
    rows = [
        {"alias": "a", "share": 0.3206246938899742, "high": 1234.56, "low": None, "p": 1e-200},
        {"alias": "b", "share": None, "high": 0.0, "low": None, "p": -0.00316},
    ]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE part_results SET data = ?", (json.dumps(rows),))
        connection.commit()
    result = Result(path)
    (table,) = result.tables("trust")
    assert table.header == ["alias", "share", "high", "p"]
    assert table.rows == [["a", "0.321", "1235", "1e-200"], ["b", "–", "0.0", "-0.00316"]]
    assert "0.3206246938899742" in result.render("csv", "trust")


STEERING = "\x1b[2J\x1b]0;owned\x07\u202eevil\nline"


def test_a_stored_part_cannot_steer_the_terminal(hunt):
    (path,) = (hunt / "runs").glob("*.parley")
    data = json.dumps([{"alias": STEERING, STEERING: 1}])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE part_results SET data = ?, version = ?", (data, STEERING))
        connection.commit()
    for form in ("text", "markdown", "latex"):
        shown = command("show", "hunt", "--part", "trust", "--format", form, cwd=hunt).out
        assert "␛[2J␛]0;owned␇<U+202E>evil" in shown
        assert not {*"\x1b\x07\u202e"} & {*shown}
    shown = command("show", "hunt", "--part", "trust", cwd=hunt).out
    assert "evil␊line" in shown  # a cell stays in its line


PLANTED = ("results", "pairs", "cost", "payoffs", "public_goods.payoffs", "public_goods.payments")


def test_a_planted_result_never_takes_the_place_of_one_that_is_computed(tmp_path):
    models = {"a": "bot/altruist", "b": "bot/free-rider"}
    result = parley.run("public_goods", models, repeats=2, rounds=2, store=tmp_path)
    kind = task_class("public_goods")
    parts = ("results", "pairs", "cost", "payoffs", "payments")
    forms = [(part, form) for part in parts for form in ("text", "csv")]
    before = {each: Result(result.ref, task=kind).render(each[1], each[0]) for each in forms}
    data = Result(result.ref, task=kind).data
    with closing(sqlite3.connect(result.path)) as connection, connection:
        connection.execute("DELETE FROM part_results")
        for name in PLANTED:
            row = name, json.dumps([{"alias": "a", "mean": 99999}])
            connection.execute("INSERT INTO part_results VALUES (?, '1', '{}', ?, '[]')", row)
    planted = Result(result.ref, task=kind)
    assert {each: planted.render(each[1], each[0]) for each in forms} == before
    assert Result(result.ref, task=kind).data == data
    for part in parts:
        assert "99999" not in command("show", str(result.path), "--part", part, cwd=tmp_path).out
    unnamed = Result(result.ref)  # without the task, what it would compute is not known
    assert "99999" not in unnamed.render(part="pairs") + unnamed.render(part="results")
    found = [each.detail for each in audit_run(result.ref).breaches]
    assert len(found) == 4
    assert all("which Parley does not store" in said for said in found)


def test_results_that_were_not_recomputed_are_marked_in_every_form(hunt):
    (path,) = (hunt / "runs").glob("*.parley")
    assert Result(path).data["stored_parts"] == ["stag_hunt.trust"]
    assert Result(path, task=task_class(str(EXAMPLE))).data["stored_parts"] == []
    shown = command("show", "hunt", "--part", "trust", "--format", "csv", cwd=hunt)
    assert "were not recomputed" in shown.err
    assert "were not recomputed" not in shown.out


def test_stored_parts_with_one_name_do_not_hide_each_other(hunt):
    (path,) = (hunt / "runs").glob("*.parley")
    with closing(sqlite3.connect(path)) as connection:
        for name in ("other_game.trust", "stag_hunt.results", "stag_hunt.alone"):
            connection.execute(
                "INSERT INTO part_results (name, version, schema, data, figures) "
                "VALUES (?, '1', '{}', ?, '[]')",
                (name, json.dumps([{"from": name}])),
            )
        connection.commit()
    result = Result(path)
    assert set(result.stored) == {
        "stag_hunt.trust", "other_game.trust", "stag_hunt.results", "alone",
    }  # fmt: skip
    assert "other_game.trust" in result.render(part="other_game.trust")
    assert "cooperation" not in result.render(part="other_game.trust")
    assert "stag_hunt.alone" in command("show", "hunt", "--part", "alone", cwd=hunt).out
    assert {"stag_hunt.trust", "other_game.trust"} <= set(result.data["parts"])
    assert "alone" in Result(path, task=task_class(str(EXAMPLE))).stored
