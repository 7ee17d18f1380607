"""Tasks at the command line: actions as they are read, the rule by feeding replies, and real
machines that nobody deceives."""

import asyncio
import time
from collections import Counter
from functools import partial

import pytest

from parley import OSEntry, Seat, ShellScript, load_items, resume, run
from parley.audit.audit import audit_run
from parley.errors import Unreadable
from parley.results.match_list import MatchFilter, list_matches
from parley.rules.pool import split_demonstrations
from parley.runs.stand_ins import fake_verdict
from parley.sandbox.executor import Sandbox
from parley.sandbox.limits import Limits
from parley.store import read_run
from parley.tasks._common.os_machine import judge_machine
from parley.tasks.os_tasks.rule import Action, ActionReader, OSTasks
from parley.testing import check_task
from parley.testing.by_hand import Speaking, play
from tests.isolation import isolated

AGENT = Seat("agent")
SAME = ShellScript("import sys; sys.exit(sys.argv[1].strip() != sys.argv[2].strip())", "python")
COUNT = OSEntry(
    "count",
    "How many files are in /srv/in?",
    init=(ShellScript("mkdir -p /srv/in; touch /srv/in/{a,b,c}"),),
    checks=(None, SAME),
    example=ShellScript("ls /srv/in | wc -l"),
)
BASH = ActionReader().write(Action("bash", "ls /srv/in | wc -l"), "I count.")


def played(replies, item=COUNT, execute=fake_verdict, **params):
    """A match with these replies; the outcome, and what the agent was shown before each."""
    seat = Speaking(lambda view: replies[min(view.reply_count, len(replies) - 1)])
    outcome = play(OSTasks(**params), {AGENT: seat}, item=item, execute=execute)
    return outcome, [view.text for view in seat.views]


# ---- actions


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("Think: x\n\nAct: bash\n\n```bash\nls\n```", Action("bash", "ls")),
        ("**Act:** bash\n```sh\nls -l\n\npwd\n```", Action("bash", "ls -l\n\npwd")),
        ("```bash\nls\n```\nAct: bash", Action("bash", "ls")),
        ("Act: bash\n```\nls\n```\nand\n```bash\npwd\n```", Action("bash", "ls\n\npwd")),
        ("Think: it is 3.\nAct: answer(3)", Action("answer", "3")),
        ("Act: answer(f(x) (y))\n(done)", Action("answer", "f(x) (y)")),
        ("Act: answer(two\nlines)", Action("answer", "two\nlines")),
        ("ACTION: `answer(/srv/a)`", Action("answer", "/srv/a")),
        ("Act: answer()", Action("answer", "")),
        ("Act: finish", Action("finish")),
        ("Act: bash\n```bash\necho 'x\nAct: finish'\n```", Action("bash", "echo 'x\nAct: finish'")),
        ("Act: bash\n```bash\nls\n```\nOutput: 3\nAct: answer(3)", Action("answer", "3")),
    ],
)
def test_an_action_is_read(text, action):
    assert ActionReader().read(text) == action


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("I would list the files.", "no line"),
        ("Act: bash", "fenced block"),
        ("Act: bash\n```python\nprint()\n```", "fenced block"),
        ("Act: bash\n```bash\nrm -r /tmp/a", "not closed"),
        ("Act: answer 3", "brackets"),
        ("Act: dance", "no line"),
        ("", "no line"),
    ],
)
def test_what_is_no_action_says_why(text, fault):
    with pytest.raises(Unreadable, match=fault):
        ActionReader().read(text)


def test_an_action_that_is_written_is_read_as_the_same():
    for action in (Action("bash", "ls\n\npwd"), Action("answer", "a (b) c"), Action("finish")):
        assert ActionReader().read(ActionReader().write(action, "why")) == action


# ---- the rule


def facts(outcome):
    """How a match ended, its turns, and its scores."""
    (note,) = outcome.notes
    return note.facts["end"], note.facts["turns"], outcome.scores[AGENT]["success"]


def test_matches_end_in_four_ways():
    assert facts(played([BASH, "Act: answer(3)"])[0]) == ("answered", 2, 0)
    assert facts(played([BASH, BASH, "Act: finish"])[0]) == ("finished", 3, 0)
    assert facts(played([BASH])[0]) == ("out of turns", 8, 0)
    assert facts(played([BASH], turns=3)[0]) == ("out of turns", 3, 0)
    outcome, shown = played([BASH, "no idea"])
    assert facts(outcome) == ("gave up", 2, 0)
    assert len(shown) == 3  # it was asked again once
    assert [each.kind for each in outcome.violations] == ["unreadable", "unreadable"]


def test_long_outputs_are_cut_and_silence_is_told():
    outputs = ["x" * 800, "y" * 801, "", "late"]

    async def execute(program):
        found = await fake_verdict(program)
        if program["do"] == "run":
            output = outputs.pop(0)
            late = output == "late"
            found |= {"output": output, "timed_out": late, "restarted": "it ended" if late else ""}
        return found

    _, shown = played([BASH, BASH, BASH, BASH, "Act: finish"], execute=execute)
    assert "x" * 800 in shown[1]
    assert "y" * 780 + "\n[The output is longer" in shown[2]
    assert "y" * 781 not in shown[2]
    assert "printed nothing" in shown[3]
    assert "took too long" in shown[4]
    assert "started anew (it ended)" in shown[4]


def first_view(**params):
    seat = Speaking(lambda view: "Act: finish")
    play(OSTasks(**params), {AGENT: seat}, item=COUNT, execute=fake_verdict)
    return seat.views[0]


def test_one_worked_example_comes_before_the_task_unless_it_is_left_out():
    assert first_view(shots=0).examples is None
    _, examples = first_view().examples
    kinds = [ActionReader().read(each.answer).kind for each in examples]
    assert kinds == ["bash", "answer"]
    assert len(split_demonstrations(examples)) == 1
    assert all(each.question.endswith(ActionReader().hint) for each in examples)


def test_the_arguments_of_checks_are_the_answer_and_what_was_printed_before():
    asked = []

    async def execute(program):
        if program["do"] == "check":
            asked.append((program["command"], program["arguments"]))
        found = await fake_verdict(program)
        return {**found, "status": 0, "output": f"out {len(asked)}\n"}

    outcome, _ = played(["Act: answer(a b)"], execute=execute)
    assert asked == [(COUNT.example.code, ["a b"]), (SAME.code, ["a b", "out 1\n"])]
    assert facts(outcome) == ("answered", 1, 1)
    asked.clear()
    played(["Act: finish"], execute=execute)
    assert asked[0][1] == ["None"]


@pytest.mark.parametrize(
    ("decides", "answer", "right"),
    [
        ({"answer": " 42 "}, "42", True),
        ({"answer": "42 ", "strip": False}, "42", False),
        ({"answer": "42", "strip": False}, "42", True),
    ],
)
def test_an_answer_is_matched_by_its_words(decides, answer, right):
    item = OSEntry("x", "Which?", **decides)
    assert facts(played([f"Act: answer({answer})"], item)[0])[2] == right
    assert facts(played(["Act: finish"], item)[0])[2] == 0


@pytest.fixture
def impatient(monkeypatch):
    """A sandbox gives programs less time."""
    monkeypatch.setattr("parley.sandbox.executor.Limits", partial(Limits, cpu=1, wall=4.0))


PATTERNS = {
    "v": ("^v[0-9]+$", "v12", True),
    "w": ("^v[0-9]+$", "version 12", False),
    "x": (r"(?s)'\"\\\Z", "a\r\n'\"\\", True),
    "y": (r"^(\w)(?=é)(?i:É)\1$", "aéa", True),
    "z": ("^(a+)+$", "a" * 60 + "!", False),
}


@isolated
@pytest.mark.parametrize("name", ["v", "w", "x", "y", "z"])
def test_an_answer_is_matched_by_a_pattern(impatient, name):
    pattern, answer, right = PATTERNS[name]
    sandbox, entry = Sandbox(), OSEntry(name, "Which?", regex=pattern)
    try:
        assert asyncio.run(judge_machine(sandbox.execute, entry, answer)).solved == right
    finally:
        sandbox.close()


@isolated
def test_a_pattern_that_takes_too_long_is_a_wrong_answer_and_on_record(impatient, tmp_path):
    """The record has how it ended: nothing is matched again when a run is audited or resumed."""
    item = OSEntry("hard", "Which?", regex="^(a+)+$")
    players = {
        "long": {"model": "bot/answerer", "answer": "a" * 60 + "!"},
        "right": {"model": "bot/answerer", "answer": "aaa"},
    }
    result = run("os_tasks", players, items=[item], store=tmp_path)
    means = {
        row["alias"]: row["mean"] for row in result.data["results"] if row["metric"] == "success"
    }
    assert means == {"long": 0.0, "right": 1.0}
    (said,) = [
        note.facts["fault"] for note in read_run(result.ref).notes.read() if "fault" in note.facts
    ]
    assert said.startswith("the pattern of item hard could not be matched")
    began = time.monotonic()
    assert not audit_run(result.ref).breaches
    assert time.monotonic() - began < 5


def score_of(item):
    """The scores of a match whose checks all pass, and whether these were live."""
    live = set()

    async def execute(program):
        if program["do"] == "check":
            live.add(program.get("live", False))
        return {**await fake_verdict(program), "status": 0}

    outcome, _ = played(["Act: finish"], item, execute=execute)
    scores = outcome.scores[AGENT]
    (note,) = outcome.notes
    assert note.facts["unprotected"] == ("success" not in scores)
    return scores.get("success"), scores.get("success_unprotected"), *live


@pytest.mark.parametrize(
    ("check", "scores"),
    [
        ("test -e /srv/x", (1, None, False)),
        ("pgrep -x sleep", (None, 1, True)),
        ("/usr/local/bin/mine", (None, 1, True)),
        ("git -C /srv status", (None, 1, False)),
    ],
)
def test_a_verdict_that_can_be_forged_stands_apart(check, scores):
    assert score_of(OSEntry("x", "Do it.", checks=(ShellScript(check),))) == scores


def test_a_machine_with_one_user_plays_no_task_for_several():
    async def execute(program):
        return {**await fake_verdict(program), "users": False}

    item = OSEntry("x", "Add one.", init=(ShellScript("useradd ada"),), answer="1")
    outcome, _ = played(["Act: finish"], item, execute=execute)
    assert outcome.state == "aborted"
    assert "several users" in outcome.reason


def test_a_machine_that_could_not_be_prepared_says_nothing_by_its_state():
    async def execute(program):
        found = await fake_verdict(program)
        return (
            {**found, "status": 4, "errors": "no\nsuch thing"}
            if program["do"] == "prepare"
            else found
        )

    state = OSEntry("x", "Mend it.", init=(ShellScript("break it"),), checks=(SAME,))
    outcome, shown = played(["Act: finish"], state, execute=execute)
    assert (outcome.state, shown) == ("aborted", [])
    assert "exit 4: such thing" in outcome.reason
    assert played(["Act: finish"], COUNT, execute=execute)[0].state == "done"


def test_items_that_cannot_be_played_are_left_out():
    missing = OSEntry("x", "x", init=(ShellScript("", missing="init/a.sh"),), answer="1")
    foreign = OSEntry("x", "x", example=ShellScript("main(){}", "c++"), answer="1")
    assert "init/a.sh" in OSTasks().reject_reason(missing)
    assert "c++" in OSTasks().reject_reason(foreign)
    assert OSTasks().reject_reason(COUNT) == ""


def test_the_task_conforms():
    check_task(OSTasks(turns=3), seeds=(1,))


# ---- machines


@isolated
def test_a_run_of_bots_tells_who_can_do_it(tmp_path):
    """A few of the bundled tasks, one of each kind; all of them in a slow test."""
    items = [*{each.subject: each for each in load_items("samples", OSEntry)}.values()]
    models = ["bot/solver", "bot/cheater"]
    result = run("os_tasks", models, items=items, store=tmp_path)
    means = {
        row["alias"]: row["mean"] for row in result.data["results"] if row["metric"] == "success"
    }
    assert means == {"solver": 1.0, "cheater": 0.0}
    ends = {row.alias: row for row in result.part("ends")}
    assert (ends["cheater"].answered, ends["cheater"].answered_right) == (6, 0)
    assert ends["solver"].answered_right + ends["solver"].finished_right == 6
    assert ends["solver"].mean_turns == 2
    assert not audit_run(result.ref).breaches


def result_of(items, tmp_path, **options):
    return run("os_tasks", ["bot/solver", "bot/idler"], items=items, store=tmp_path, **options)


@isolated
def test_success_counts_protected_matches_only(tmp_path):
    subjects = ("programs", "text")
    items = [each for each in load_items("samples", OSEntry) if each.subject in subjects]
    result = result_of(items, tmp_path)
    rows = {(row["alias"], row["metric"]): row for row in result.data["results"]}
    for metric, n in (("success", 5), ("success_unprotected", 4), ("turns", 9)):
        for alias in ("solver", "idler"):
            row = rows[alias, metric]
            assert (row["matches"], row["missing"], row["blocks"]) == (n, 0, n)
    assert rows["solver", "success_unprotected"]["mean"] == 1
    assert rows["idler", "success_unprotected"]["mean"] == 0
    table = str(result.table())
    assert "n = 5 matches each" in table
    assert "`success` leaves out 4 matches of each model" in table
    assert "unprotected" in result.tables("ends")[0].header


@isolated
def test_a_run_of_unprotected_tasks_alone_has_no_success(tmp_path):
    items = [each for each in load_items("samples", OSEntry) if each.subject == "programs"]
    result = result_of(items[:2], tmp_path)
    rows = {
        row["alias"]: (row["mean"], row["matches"])
        for row in result.data["results"]
        if row["metric"] == "success"
    }
    assert rows == {"solver": (None, 0), "idler": (None, 0)}
    text = result.render()
    assert "success; higher is better; n = 0 matches each" in text
    assert "they are in `success_unprotected`" in text
    result.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    first = page.partition("Read this first")[2].partition("</section>")[0]
    assert "leaves out 2 matches of each model" in first
    with read_run(result.ref) as reader:
        listed = list_matches(reader, MatchFilter(worst=1))
    assert listed[0].focus.alias == "idler"
    assert listed[0].focus.score_text == "0.000 (unprotected)"
    said = " ".join(audit_run(result.ref).cautions)
    assert "what commands and checks returned in 4 matches was not verified" in said


@isolated
def test_a_run_without_unprotected_tasks_has_no_word_of_them(tmp_path):
    items = [each for each in load_items("samples", OSEntry) if each.subject == "text"]
    result = result_of(items, tmp_path)
    assert {row["metric"] for row in result.data["results"]} == {"success", "turns"}
    assert "unprotected" not in str(result.table(metrics="all"))
    assert "unprotected" not in result.tables("ends")[0].header


@isolated
def test_runs_that_stop_by_their_scores_do_so_with_protected_ones(tmp_path):
    subjects = ("programs", "text")
    items = [each for each in load_items("samples", OSEntry) if each.subject in subjects]
    result = result_of(items, tmp_path, until_stable=True, half_width=0.45)
    rows = {(row["alias"], row["metric"]): row for row in result.data["results"]}
    assert rows["solver", "success"]["mean"] == 1
    assert rows["idler", "success"]["mean"] == 0


@isolated
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_all_bundled_tasks_can_be_done_and_by_nobody_who_does_nothing_or_cheats(tmp_path):
    models = {
        "solver": "bot/solver",
        "idler": "bot/idler",
        "cheater": "bot/cheater",
        "zero": "bot/answerer",
        "yes": {"model": "bot/answerer", "answer": "yes"},
        "none": {"model": "bot/answerer", "answer": ""},
    }
    result = run("os_tasks", models, store=tmp_path)
    means = {
        row["alias"]: row["mean"] for row in result.data["results"] if row["metric"] == "success"
    }
    assert means == {**dict.fromkeys(models, 0.0), "solver": 1.0}


def test_bundled_tasks_are_of_six_kinds():
    kinds = Counter(each.subject for each in load_items("samples", OSEntry))
    assert len(kinds) == 6
    assert kinds.total() >= 24
    assert min(kinds.values()) >= 4


@isolated
def test_one_experience_replaces_the_worked_example_in_evolve(tmp_path):
    items = [each for each in load_items("samples", OSEntry) if each.subject == "logs"]
    settings = {"stages": 1, "retriever": "bm25", "probe": False}
    result = run(
        "os_tasks", ["bot/solver"], items=items, store=tmp_path, plan="evolve", evolve=settings
    )
    with read_run(result.ref) as reader:
        shown = list(reader.experiences.recalled())
    assert [(each.k, len(each.shown)) for each in shown] == [(1, 1)] * len(items)


@isolated
@pytest.mark.parametrize(
    ("success", "wanted"),
    [("", "files-links"), ("success_unprotected >= 1", "programs-backup")],
)
def test_a_match_becomes_an_experience_only_by_the_metric_that_it_has(tmp_path, success, wanted):
    wanted_ids = ("files-links", "programs-backup")
    items = [each for each in load_items("samples", OSEntry) if each.id in wanted_ids]
    settings = {"stages": 2, "keep": "all", "probe": False, "mask": False}
    settings |= {"success": success} if success else {}
    result = run(
        "os_tasks", ["bot/solver"], items=items, store=tmp_path, plan="evolve", evolve=settings
    )
    with read_run(result.ref) as reader:
        names = {match.number: match.item for match in reader.matches.read()}
        shown = {names[e.match] for row in reader.experiences.recalled() for e in row.shown}
    assert shown == {wanted}


@isolated
def test_a_stopped_run_goes_on_in_the_same_machine(tmp_path):
    replies = [
        ActionReader().write(Action("bash", "cd /srv/in; N=$(ls | wc -l)"), "a"),
        ActionReader().write(Action("bash", "echo $N in $PWD"), "b"),
        "Act: answer(3)",
    ]
    models = {"me": lambda view: replies[view.reply_count]}
    begun = run("os_tasks", models, items=[COUNT], store=tmp_path, max_calls=1)
    done = resume(begun.path, functions=models, max_calls=10)
    (row,) = [row for row in done.data["results"] if row["metric"] == "success"]
    assert row["mean"] == 1
    with read_run(done.ref) as reader:
        outputs = [result.get("output") for _, result in reader.effects.of(1).values()]
        assert reader.calls.count() == 3
    assert "3 in /srv/in\n" in outputs
