"""The page of one run: readable on a phone and by a screen reader, whatever a model says."""

import re

import pytest

from parley import Question, run
from parley.plans.stop_targets import StopTarget
from parley.report.build import build_report
from parley.report.html import read_style, render
from parley.report.run_page import ShownPart, name_task, repeat_command
from parley.results.scores import RunScores
from parley.store.config import Config
from parley.tables import Table
from parley.tasks.word_guessing import WordGuessing

ITEMS = [Question(f"q{n}", "What makes leaves green?", "B", ("Iron", "Chlorophyll")) for n in "ab"]
HOSTILE = "</style></bdi><script>alert(1)</script><svg onload=alert(1)>\u202eabc"


def page_of(folder, models, **more):
    found = run("qa", shots=0, models=models, items=ITEMS, store=folder, **more)
    return found.report(folder / "page.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    """A run of one model with hostile replies, one of them a very long word."""

    def reply(view):
        return HOSTILE + "x" * 200_000

    return page_of(tmp_path_factory.mktemp("single"), {"only": reply})


def test_what_a_model_says_stays_text(single):
    assert single.count("<script") == 0
    assert single.count("</style>") == 1
    assert "<svg onload" not in single
    assert "\u202e" not in single
    assert "&lt;U+202E&gt;abc" in single
    assert len(single) < 100_000  # long replies are cut, and the page says so
    assert "more characters: this page has no room for them." in single


def test_one_model_is_counted_as_one_and_beats_nobody(single):
    assert "<strong>1</strong> model</li>" in single
    assert "is first" not in single
    assert "Who beats whom" not in single


@pytest.mark.parametrize(
    ("task", "heading"),
    [
        ("qa", "QA"),
        ("kieval", "KIEval"),
        ("os_tasks", "OS tasks"),
        ("public_goods", "Public goods"),
        ("not_installed", "Not installed"),
    ],
)
def test_headings_spell_tasks_as_people_do(task, heading):
    assert name_task(task) == heading


def draw_table(table, title):
    part = ShownPart("a", "task", "s0-a", title, "", (), (table,), (), "")
    return render("part.html", part=part)


def test_tables_have_a_caption_and_scoped_headings_but_no_empty_ones():
    drawn = draw_table(Table(["", "calls"], [["a", "-1"]]), "Cost <b>")
    assert '<caption class="vh">Cost &lt;b&gt;</caption>' in drawn
    assert '<th scope="col">calls</th>' in drawn
    assert "<th></th>" not in drawn
    assert "<td>−1</td>" in drawn
    titled = draw_table(Table(["model"], [["a"]], title="By role"), "Cost")
    assert re.findall("<caption.*?</caption>", titled) == ["<caption>By role</caption>"]


def test_cells_of_a_table_with_many_columns_may_take_two_lines():
    few, many = (
        draw_table(Table(["x"] * columns, [["1.0 to 2.0"] * columns]), "T") for columns in (6, 16)
    )
    assert 'class="table left1 many"' in many
    assert "many" not in few
    assert ".many td{white-space:pre-wrap}" in read_style()


def test_what_scrolls_keeps_its_hidden_words_inside_and_is_no_landmark():
    # hidden words are placed absolutely: without a positioned parent they widen the page
    assert re.search(r"\.scroll\{[^}]*position:relative", read_style())
    assert 'role="group" aria-label="a &amp; b"' in draw_table(Table(["x"], [["1"]]), "a & b")


def config(**more):
    models = {"a": {"model": "bot/random"}, "x": {"model": "bot/free-rider"}}
    return Config("public_goods", {}, models, ["a"], **more)


def test_the_command_to_repeat_a_run_has_its_opponent_and_its_stopping_rule():
    said = repeat_command(
        config(plan="versus", adversary="x", stop=StopTarget(2.5, target="new_items"), seed=3)
    )
    assert said == (
        "parley run public_goods -m a=bot/random --plan versus --adversary x=bot/free-rider "
        "--until-stable --half-width 2.5 --target new_items --seed 3"
    )
    assert "--until-stable" not in repeat_command(config(plan="race", stop=StopTarget(2.5, top=1)))


def test_the_command_to_repeat_a_run_has_every_option_that_decides_what_is_played():
    said = repeat_command(config(plan="cycles", repeats=3, seats=4, standardise="always"))
    assert "--seats 4" in said
    assert "--repeats 3" in said
    assert "--standardise always" in said
    limited = repeat_command(config(max_calls=9, concurrency=2, budget_usd=1.0, name="mine"))
    assert limited == repeat_command(config())


def test_the_command_to_repeat_a_run_is_read_as_the_run_was_played():
    said = repeat_command(Config("word_guessing", {"topics": ["food", "science"]}, {}, []))
    words = said.split()
    name, _, value = words[words.index("--set") + 1].partition("=")
    assert WordGuessing.from_params({name: value}).topics == ("food", "science")


def test_a_run_with_replaced_prompts_has_no_command_that_would_play_something_else():
    assert repeat_command(config(prompts={"public_goods.start": "Hello"})) == ""


def test_a_run_without_a_finished_match_claims_nothing(tmp_path):
    found = run(
        "public_goods",
        models={"a": "bot/random", "b": "bot/free-rider"},
        max_calls=1,
        concurrency=1,
        store=tmp_path,
    )
    text = found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "No match has a score yet, so there is no result." in text
    assert "<strong>2</strong> models" in text
    assert "<h2>Result</h2>" not in text


def test_a_page_reads_the_scores_of_a_run_once(tmp_path, monkeypatch):
    found = run(
        "public_goods",
        models={"a": "bot/random", "b": "bot/free-rider"},
        repeats=2,
        store=tmp_path,
    )
    read = []

    class Counted(RunScores):
        def __init__(self, *given, **more):
            read.append(self)
            super().__init__(*given, **more)

    monkeypatch.setattr("parley.results.result.RunScores", Counted)
    build_report([found.ref]).render("html")
    assert len(read) == 1


def test_a_page_of_one_run_begins_with_the_task_and_what_was_found(tmp_path):
    text = page_of(tmp_path, {"a": lambda view: "B", "b": lambda view: "A"})
    order = [
        text.index("<h1><bdi>QA</bdi></h1>"),
        text.index("Answer one question, right or wrong"),
        text.index('<p class="lead"><bdi>a and b cannot be told apart after 2 matches each.'),
        text.index("✓ audited: no breach"),
        text.index("<h2>Result</h2>"),
        text.index("<h2>Models and datasets</h2>"),  # what compares runs comes after the run
    ]
    assert order == sorted(order)


def test_a_single_interview_run_among_others_keeps_its_sections(tmp_path):
    goods = run(
        "public_goods",
        models={"a": "bot/altruist", "b": "bot/free-rider"},
        rounds=1,
        repeats=2,
        store=tmp_path,
    )
    asked = run("qa", shots=0, models={"c": lambda view: "A"}, items=ITEMS, store=tmp_path)
    text = build_report([goods.ref, asked.ref]).render("html")
    contents = text[text.index("<nav") : text.index("</nav>")]
    assert "Models and datasets" not in contents
    own = text.index('<section class="card" id="s1-own-models"><h2>Models and datasets</h2>')
    assert text.index('<article id="s0">') < text.index('<article id="s1">') < own
    assert "`" not in re.sub("<pre>.*?</pre>", "", text[own:], flags=re.DOTALL)
    assert "<code>acc.</code> is the benchmark accuracy" in text
    # two bots that made equally many calls: no picture of it, and nothing beside a cost
    assert 'id="s0-efficiency"' not in text
    cost = text[text.index('id="s0-cost"') :]
    assert cost.index("<details>") < cost.index("<table")
    assert "<figure" not in cost[: cost.index("</section>")]
    assert "A band can be wide although all amounts of a model are equal" in text


def test_a_page_of_several_runs_begins_with_what_each_of_them_found(tmp_path):
    models = {"a": "bot/altruist", "b": "bot/free-rider"}
    found = [
        run("public_goods", models=models, rounds=1, repeats=6, max_calls=calls, store=tmp_path)
        for calls in (None, 5)
    ]
    text = build_report([each.ref for each in found]).render("html")
    start, end = text.index("<h2>What was found</h2>"), text.index('<nav aria-label="Contents">')
    first = text[start:end]
    assert text.index("Pay into a common pool") < start
    assert first.count('class="lead"') == 2
    assert "This result is partial: 2 of 6 matches ended." in first
    assert "<bdi>! stopped</bdi></span>" in first
    assert re.search(r'<a class="chip warn" href="#s1"><bdi>! \d caution', first)
