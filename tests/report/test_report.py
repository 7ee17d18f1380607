"""Reports: runs gathered by model and dataset, the paper's tables through them, figures from
elsewhere, the page."""

import asyncio
import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from statistics import fmean
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley import Question, UsageError, run, run_async
from parley.report import page
from parley.report.build import build_report
from parley.report.html import read_style
from parley.report.page_options import PageOptions
from parley.report.svg import choose_ticks, draw
from parley.results.compared_runs import ComparedRuns, ComparisonOptions
from parley.results.part import Style
from parley.statistics.contamination import ModelPoint, assess_contamination, correlation_rows
from parley.statistics.intervals import compute_interval
from parley.tasks.kieval.analysis import stop_bars
from parley.tasks.kieval.comparison import Analysis, ReportRecord, analyse_runs, compare_controls
from parley.tasks.kieval.entries import (
    Entry,
    MeasuredMean,
    interval_of_means,
    merge_entries,
    overall_mean,
)
from parley.tasks.kieval.model_table import BENCHMARK, FIRST, GIVEN, build_model_table
from parley.tasks.kieval.report import (
    correlation_tables,
    correlation_words,
    dataset_tables,
    fit_figure,
    overview_table,
)
from parley.tasks.kieval.rule import ASPECTS, KIEval
from parley.tasks.kieval.scores_file import read_scores_file
from parley.testing.server import Server, sent
from tests.cli.test_cli import parley as command
from tests.kieval import MODELS, TABLE_2, TABLE_5, points

ROUNDS = {"ARC-E": [4.97, 4.85, 4.70, 4.49, 4.64, 4.58, 4.34]}
# table 2
OVERALL = [
    (72.1, 92.1),
    (70.2, 81.1),
    (59.4, 77.0),
    (49.4, 72.4),
    (59.5, 73.0),
    (75.4, 74.3),
    (36.8, 62.2),
]
MT_BENCH = [8.39, 6.86, 6.65, 6.27, 6.84, 4.86, 5.42]
LEAF = Question(
    "leaf", "What makes leaves green?", "B", ("Carotene", "Chlorophyll", "Iron", "Water"), "biology"
)
LEAFS = [replace(LEAF, id=f"leaf {n}") for n in range(6)]
PLAIN = KIEval(verify="no", words=5)


def table_2(folder, **more):
    """Table 2 as a file."""
    names = [f"{kind}@{name}" for name in TABLE_2 for kind in ("accuracy", "kieval")]
    rows = [
        [
            model,
            *(side[at] for sides in TABLE_2.values() for side in sides),
            ROUNDS["ARC-E"][at],
            MT_BENCH[at],
        ]
        for at, model in enumerate(MODELS)
    ]
    path = folder / "table2.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["model", *names, "rounds@ARC-E", "MT-Bench"], *rows])
    return path


# --- the paper's numbers --------------------------------------------------------------------------


def test_table_2_gives_its_own_means_over_datasets(tmp_path):
    found = build_model_table([], read_scores_file(table_2(tmp_path)))
    assert (found.models, found.datasets) == (MODELS, list(TABLE_2))
    for model, (accuracy, score) in zip(MODELS, OVERALL, strict=True):
        assert found.overall[model]["accuracy"].value == pytest.approx(accuracy, abs=0.11)
        assert found.overall[model]["kieval_played"].value == pytest.approx(score, abs=0.11)
        # nobody says how many questions there were
        assert found.overall[model]["accuracy"].low is None
    assert found.columns["MT-Bench"]["Yi 6B"] == 4.86
    assert found.by["GPT-3.5", "ARC-E"].figures["rounds"].value == 4.97
    assert {cell.source for cell in found.cells} == {GIVEN}


def test_table_5_comes_out_of_table_2(tmp_path):
    found = build_model_table([], read_scores_file(table_2(tmp_path)))
    assert found.points == points()
    rows = {
        (row.dataset or "Overall", row.without): row.correlation
        for row in correlation_rows(found.points, ["Yi 6B"])
    }
    for name, (r, p, r_without, p_without) in TABLE_5.items():
        assert rows[name, ()].r == pytest.approx(r, abs=0.005)
        assert rows[name, ()].p == pytest.approx(p, rel=0.08)
        assert rows[name, ("Yi 6B",)].r == pytest.approx(r_without, abs=0.005)
        assert rows[name, ("Yi 6B",)].p == pytest.approx(p_without, rel=0.12)


# --- figures from elsewhere -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("name,x\na,1\n", "row 1: expected a column `model`, found name, x"),
        ("model,x,x\na,1,2\n", "row 1: the column 'x' appears twice"),
        ("model,x\na,1,2\n", "row 2: this row has 3 cells, but the header has 2"),
        (
            "model,x\n\na,one\n",
            "row 3: column `x` must be a number, or empty if there is no value, not 'one'",
        ),
        ("model,x\na,nan\n", "row 2: column `x` must be a number"),
        ("model,x\n,1\n", "row 2: the column `model` is empty: write the name of the model"),
        ("model,x\na,1\na,2\n", "row 3: the value of `x` for a is given twice: remove one of them"),
        (
            "model,column,value\na,MT,1\na,MT,2\n",
            "row 3: the value of `MT` for a is given twice: remove one of them",
        ),
        ("model,accuracy@mmlu\na,101\n", "`accuracy@mmlu` must be from 0 to 100 for a, not 101"),
        ("model,recall@mmlu\na,1\n", "use accuracy@NAME, kieval@NAME or rounds@NAME"),
    ],
)
def test_a_fault_in_a_file_is_named_by_its_row(tmp_path, text, said):
    (tmp_path / "s.csv").write_text(text)
    with pytest.raises(UsageError) as wrong:
        read_scores_file(tmp_path / "s.csv")
    assert said in str(wrong.value)


def test_long_and_wide_files_say_the_same_and_empty_cells_are_missing(tmp_path):
    (tmp_path / "wide.csv").write_text(
        "model,MT,accuracy@mmlu\na,8.1,50\nb,,40\n", encoding="utf-8-sig"
    )
    (tmp_path / "long.csv").write_text(
        "column,model,value\nMT,a,8.1\naccuracy@mmlu,a,50\nMT,b,\naccuracy@mmlu,b,40\n"
    )
    wide, long = (read_scores_file(tmp_path / f"{name}.csv") for name in ("wide", "long"))
    assert (wide.columns, wide.given) == (long.columns, long.given)
    assert wide.columns == {"MT": {"a": 8.1}}


def test_a_file_neither_contradicts_a_run_nor_names_strangers(tmp_path):
    (tmp_path / "s.csv").write_text("model,MT\nknown,1\nunknwn,2\n")
    with pytest.raises(UsageError, match=r"'unknwn'; did you mean 'known'"):
        build_model_table([entry("known")], read_scores_file(tmp_path / "s.csv"))
    (tmp_path / "s.csv").write_text("model,kieval@mmlu\na,50\n")
    with pytest.raises(
        UsageError, match="has a value of kieval@mmlu for a, but run r1 already measured it"
    ):
        build_model_table([entry()], read_scores_file(tmp_path / "s.csv"))
    (tmp_path / "s.csv").write_text("model,accuracy@mmlu\na,50\n")
    (cell,) = build_model_table([entry()], read_scores_file(tmp_path / "s.csv")).cells
    # published, where only first answers were measured
    assert (cell.source, cell.figures["accuracy"].value) == (GIVEN, 50)
    assert cell.point.errors is None


# --- gathering ------------------------------------------------------------------------------------


def entry(
    model="a",
    run="r1",
    task="kieval",
    signature="s|matches:2|x:1",
    created=0.0,
    values=(0.0, 100.0, 100.0),
    **more,
):
    names = (
        ("kieval_played", "kieval_zero", "answer_accuracy", *(f"mark_{each}" for each in ASPECTS))
        if task == "kieval"
        else ("accuracy",)
    )
    by = {f"q{at}": value for at, value in enumerate(values)}
    low, high, kind = compute_interval(list(values), (0, 100))
    figure = MeasuredMean(fmean(values), low, high, len(values), 0, kind)
    bounds = dict.fromkeys(names, (0.0, 100.0))
    facts = {
        "figures": dict.fromkeys(names, figure),
        "questions": dict.fromkeys(names, by),
        "bounds": bounds,
    }
    return Entry(
        model,
        "mmlu",
        task,
        signature,
        **facts,
        runs=(run,),
        requested="bot/x",
        created=created,
        **more,
    )


def test_one_model_measured_in_two_ways_is_refused_unless_told():
    one, other = (
        entry(),
        entry(run="r2", signature="s|matches:9|x:2", created=1.0, values=(50.0, 50.0)),
    )
    with pytest.raises(
        UsageError,
        match=r"both measure a on mmlu \(kieval\), but with different settings \(x:1 versus x:2\)",
    ):
        merge_entries([one, other])
    assert merge_entries([other, one], newest=True) == [other]
    with pytest.raises(UsageError, match="given twice"):
        merge_entries([one, one])


def test_runs_made_alike_are_one_and_a_question_counts_once():
    (found,) = merge_entries(
        [
            entry(),
            entry(
                run="r2",
                signature="s|matches:7|x:1",
                created=1.0,
                values=(100.0, 100.0, 100.0, 40.0),
            ),
        ]
    )
    assert found.runs == ("r1", "r2")
    assert found.questions["kieval_played"] == {"q0": 50.0, "q1": 100.0, "q2": 100.0, "q3": 40.0}
    figure = found.figures["kieval_played"]
    assert (figure.value, figure.n) == (72.5, 4)
    assert figure.low < 72.5 < figure.high
    with pytest.raises(UsageError, match="one used sequential stopping"):
        merge_entries([entry(), entry(run="r2", created=1.0, fixed=False)])


def test_where_an_accuracy_comes_from_is_said():
    found = build_model_table([entry(), entry(run="r2", task="qa"), entry("b", run="r3")])
    assert {cell.model: cell.source for cell in found.cells} == {"a": BENCHMARK, "b": FIRST}
    assert (
        "different sources, so they may not be comparable: benchmark (a), first answers (b)"
        in found.cautions[-1]
    )


def test_a_report_on_benchmarks_alone_has_no_columns_for_interviews():
    found = build_model_table([entry(task="qa"), entry("b", run="r2", task="qa")])
    report = Analysis(found, [], None, [], ReportRecord())
    overview, (results,) = overview_table(report), dataset_tables(report, "mmlu")
    assert overview.header == ["model", "mmlu acc.", "overall acc.", "95% interval", "questions"]
    assert results.header == ["model", "acc. from", "acc.", "95% interval", "n", "missing"]
    for table in (overview, results):
        assert all(len(row) == len(table.header) for row in table.rows)
        assert "KIEval" not in table.note
        assert "interview" not in table.note


def test_models_that_were_not_measured_alike_come_with_a_caution():
    found = build_model_table([entry(), entry("b", signature="s|matches:2|x:2")])
    assert (
        "with different settings, so their scores may not be comparable (x:1 versus x:2)"
        in found.cautions[0]
    )


def test_a_model_that_lacks_a_dataset_has_no_mean_over_all():
    elsewhere = replace(entry(), dataset="arc")
    found = build_model_table([entry(), elsewhere, entry("b")])
    assert found.overall["a"]["kieval_played"].n == 6
    assert found.overall["b"]["kieval_played"] == MeasuredMean(None)
    with pytest.raises(UsageError, match="unknown model 'c'"):
        compare_controls(found, "a", "c")


def test_a_control_is_measured_as_its_suspect_is():
    found = build_model_table([entry(), entry(run="r2", task="qa"), entry("b", run="r3")])
    with pytest.raises(
        UsageError,
        match=r"are not comparable \(a from a benchmark, b from first answers\): run the task `qa`",
    ):
        compare_controls(found, "a", "b")
    given = build_model_table([entry(), replace(entry("b"), dataset="arc")])
    with pytest.raises(UsageError, match="no dataset has results for both"):
        compare_controls(given, "a", "b")


percents = st.floats(0, 100)


@given(st.lists(st.tuples(percents, percents, percents), min_size=1, max_size=6))
def test_the_interval_of_a_mean_of_means_lies_within_the_mean_of_their_intervals(parts):
    parts = [sorted(each) for each in parts]
    found = interval_of_means([(mean, low, high) for low, mean, high in parts])
    low, mean, high = (fmean(side) for side in zip(*parts, strict=True))
    assert low - 1e-6 <= found.low <= mean + 1e-6
    assert mean - 1e-6 <= found.high <= high + 1e-6


def test_an_unknown_part_is_never_zero():
    assert overall_mean([MeasuredMean(50, 40, 60, 10), None]) == MeasuredMean(None)
    assert overall_mean([MeasuredMean(50, 40, 60, 10), MeasuredMean(70)]).low is None
    assert overall_mean([MeasuredMean(50, 40, 60, 10), MeasuredMean(70)]).n is None
    both = overall_mean([MeasuredMean(50, 40, 60, 10), MeasuredMean(70, 60, 80, 20)])
    assert (both.value, both.n) == (60, 30)
    assert both.low == pytest.approx(60 - 200**0.5 / 2)


# --- the page -------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Reads a page as a browser would: its elements, addresses and words."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.addresses, self.words, self.open = [], [], [], []
        self.feed(text)
        assert not [tag for tag in self.open if tag not in VOID]

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), name
            if name in ("href", "src", "action", "xlink:href", "data", "srcset"):
                self.addresses.append(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


VOID = ("meta", "br", "hr", "img")


def checked(text):
    """A page that asks nobody for anything."""
    found = Page(text)
    assert not {"script", "link", "iframe", "img", "object", "embed", "form", "base"} & set(
        found.tags
    )
    assert all(re.fullmatch(r"#[\w-]+", address) for address in found.addresses)
    assert not re.search(r"url\(|@import|https?:", text)
    assert len(text.encode()) < 1_000_000
    ids = re.findall(r'id="([\w-]+)"', text)
    assert len(ids) == len(set(ids))
    assert {address[1:] for address in found.addresses} <= set(ids)
    return found


def graded(score=4, stop="none"):
    marks = {aspect: {"comment": "c", "score": score} for aspect in (*ASPECTS, "overall")}
    return json.dumps({**marks, "stop": stop})


def evaluator(view):
    """Ends interviews of whoever repeats itself."""
    return (
        graded(1, "repetition")
        if view.reply_count and "again and again" in view.text
        else graded(4)
    )


HOSTILE = '<script>alert("x")</script>&amp;'


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A run of functions: one sound, one that repeats itself under a hostile name and has no answer
    that can be read."""
    folder = tmp_path_factory.mktemp("hostile")
    models = {
        "sound": lambda view: "B",
        HOSTILE: lambda view: "I say it again and again and again" if view.reply_count else "?",
    }
    roles = {
        "interactor": {"i": lambda view: "The right answer is B, is it not?"},
        "evaluator": {"e": evaluator},
    }
    return run(PLAIN, models=models, roles=roles, items=LEAFS, store=folder, name="</h2><b>bold")


def test_ends_of_interviews_and_violations_are_counted(hostile):
    rows = {row["alias"]: row for row in hostile.data["parts"]["kieval.stops"]}
    assert rows["sound"]["reasons"] == {"none": 6}
    assert rows[HOSTILE]["reasons"] == {"repetition": 6}
    assert (
        rows[HOSTILE]["unreadable"]["count"]
        == rows[HOSTILE]["early"]["count"]
        == rows[HOSTILE]["interviews"]
        == 6
    )
    assert 0 < rows["sound"]["early"]["high"] < 1
    found = analyse_runs(ComparedRuns([hostile], ComparisonOptions()))
    kinds = {(row["alias"], row["kind"]): row for row in found.record.violations}
    assert kinds["i", "answer given away"]["matches"] == 12
    assert kinds[HOSTILE, "overlong"]["matches"] == 6
    played, zero = (
        found.comparison.by[HOSTILE, "own items"].figures[f"kieval_{name}"]
        for name in ("played", "zero")
    )
    assert played.value > zero.value > 0


def test_parts_of_one_run_show_stops_and_aspects(hostile):
    assert "repetition" in hostile.render(part="stops")
    assert "100.0%" in hostile.render(part="stops")
    rows = list(csv.DictReader(io.StringIO(hostile.render("csv", "stops"))))
    assert [(row["interviews"], row["stop_repetition"], row["early_share"]) for row in rows] == [
        ("6", "6", "1.0"),
        ("6", "0", "0.0"),
    ]
    assert all(row["signature"].startswith("kieval|") for row in rows)
    line = next(
        line for line in hostile.render(part="aspects").splitlines() if line.startswith("sound")
    )
    assert line.count("100.0 (") == 7  # five aspects, and the score by both conventions
    assert "conciseness" in hostile.render("markdown", "aspects")


def test_a_page_escapes_what_is_hostile_and_asks_nobody(hostile, tmp_path):
    text = hostile.report(tmp_path / "r.html").read_text(encoding="utf-8")
    found = checked(text)
    assert HOSTILE in "".join(found.words)  # shown as it is written
    assert "b" not in found.tags
    assert found.tags.count("svg") > 2  # a dataset's points, stop reasons, and those of the run


def test_a_page_that_grows_too_large_leaves_out_parts_of_single_runs(hostile, monkeypatch):
    whole = build_report([hostile.ref]).render("html")
    bare = build_report([hostile.ref]).render("html", page=PageOptions(matches=0))
    monkeypatch.setattr(page, "LARGEST", len(bare.encode()) - 3_000)
    monkeypatch.setattr(page, "FRAME", len(read_style()) + 2_000)
    small = build_report([hostile.ref]).render("html")
    assert len(small.encode()) <= page.LARGEST < len(whole.encode())
    words = " ".join(checked(small).words)
    assert f"parley show {hostile.data['run']['id']} --part" in words
    assert "There is no room for" in words
    assert "<h2>Fairness</h2>" in small
    assert "This page is larger than" not in words


def test_no_secret_stands_in_a_report(hostile, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "own items")  # which happens to be the dataset's name
    made = build_report([hostile.ref])
    for form in ("text", "markdown", "latex", "csv", "html", "json"):
        assert "own items" not in made.render(form), form
        assert "[key]" in made.render(form)
    json.loads(made.render("json"))


def test_each_part_of_a_run_has_its_heading_in_the_order_of_sections(tmp_path):
    found = run(
        "public_goods", models={"a": "bot/free-rider", "b": "bot/random"}, repeats=3, store=tmp_path
    )
    text = found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    checked(text)
    headings = re.findall(r'<section class="card" id="s0-(\w+)"><h2>([^<]*)</h2>', text)
    assert headings[-2:] == [
        ("resolved_pairs", "Cost of resolved pairs"),
        ("matches", "Matches worth reading"),
    ]
    headings.pop()
    headings.remove(("fairness", "Fairness"))  # the audit, before the parts about fairness
    parts = [found.parts[name] for name, _ in headings]
    assert [(part.name, part.title) for part in parts] == headings
    order = ["result", "task", "fairness", "judges", "cost"]
    places = [order.index(part.section) for part in parts]
    assert places == sorted(places)
    assert text.count(found.data["results"][0]["signature"]) == 1


def test_every_task_has_a_page(tmp_path):
    found = run(
        "public_goods", models={"a": "bot/free-rider", "b": "bot/random"}, repeats=3, store=tmp_path
    )
    words = " ".join(
        checked(found.report(tmp_path / "page.html").read_text(encoding="utf-8")).words
    )
    assert found.data["results"][0]["signature"] in words
    assert "difference" in words
    with pytest.raises(UsageError, match=r"need runs of kieval and qa, found runs of public_goods"):
        build_report([found.ref], ComparisonOptions(reference=["a"]))
    with pytest.raises(UsageError, match="given twice"):
        build_report([found.ref, found.ref])
    with pytest.raises(UsageError, match="cannot be written to"):
        found.report(tmp_path / "nowhere" / "page.html")


def test_a_figure_names_who_lies_apart():
    fits = assess_contamination(
        points(cheaters=True), [name for name in MODELS if name != "Yi 6B"]
    ).fits
    drawn = draw(fit_figure(next(fit for fit in fits if fit.dataset == "ARC-C")), str)
    assert drawn.count('class="ring suspected"') == 4  # wide and narrow
    assert ">PT-Cheater, suspected</text>" in drawn
    assert "Yi 6B: accuracy 79.0, KIEval 76.8, worth a look" in drawn
    assert stop_bars([("a", 5, {"none": 5})]) is None


def test_a_figure_of_too_few_models_claims_no_test():
    few = [point for point in points() if point.dataset == "ARC-C"][:3]
    (fit,) = assess_contamination(few, []).fits
    figure = fit_figure(fit)
    assert figure.line is None
    assert figure.legend.startswith("ARC-C: not tested: only 3 models have both accuracy and score")
    assert "not tested: only 3 models" in figure.alt
    assert "apart" not in figure.alt + figure.legend


@given(st.floats(-50, 100), st.floats(1e-3, 150))
def test_axes_have_some_round_ticks(low, wide):
    found = choose_ticks(low, low + wide)
    assert 2 <= len(found) <= 10
    assert all(low - 1e-6 <= tick <= low + wide + 1e-6 for tick in found)


# --- money ----------------------------------------------------------------------------------------


def test_tokens_by_role_and_what_more_models_would_cost(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.yaml").write_text(
        "i: {input: 10, output: 30}\ne: {input: 10, output: 30}\n"
    )

    async def act(asked, writer):
        grading = "Evaluate the candidate" in asked.text
        usage = {
            "prompt_tokens": 1000 if grading else 500,
            "completion_tokens": 100 if grading else 20,
        }
        choice = {
            "message": {"role": "assistant", "content": graded() if grading else "Why?"},
            "finish_reason": "stop",
        }
        await sent({"model": "mock-1", "choices": [choice], "usage": usage}, 200)(asked, writer)

    async def main():
        async with Server(act) as server:
            who = {"model": "openai-compatible/x", "base_url": server.url}
            roles = {"interactor": {"i": who}, "evaluator": {"e": who}}
            models = {"a": lambda view: "B", "b": lambda view: "A"}
            return await run_async(
                KIEval(verify="no", rounds=2),
                models=models,
                roles=roles,
                items=LEAFS[:3],
                store="runs",
            )

    result = asyncio.run(main())
    record = analyse_runs(ComparedRuns([result], ComparisonOptions())).record
    found = build_report([result.ref])
    spent = {row.role: row for row in record.spent}
    assert (
        spent["evaluator"].conversations,
        spent["evaluator"].each(spent["evaluator"].tokens_in),
    ) == (6, 2000)
    assert spent["interactor"].each(spent["interactor"].tokens_out) == 40
    (scaling,) = record.scaling
    # three questions, two rounds
    assert scaling.single == pytest.approx(3 * 2 * (1520 * 0 + 10 * 1500 + 30 * 120) / 1e6)
    assert scaling.pair == pytest.approx(3 * (10 * 2000 + 30 * 100) / 1e6)
    assert [row["models"] for row in scaling.rows] == [1, 10, 100]
    assert "in pairs" in found.render()


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Seven bots that know 30 to 90 % of the subject, two that know 30 % of it and 93 % of the
    benchmark; two kinds of runs."""
    folder = tmp_path_factory.mktemp("fleet")
    talk, answer = [], []
    for at, known in enumerate((30, 40, 50, 60, 70, 80, 90, 30, 30)):
        alias, memorised = f"h{known}" if at < 7 else f"c{at}", 0.0 if at < 7 else 0.9
        talk += [
            "-m",
            f"{alias}=bot/candidate",
            "-M",
            f"{alias}.knowledge={known / 100}",
            "-M",
            f"{alias}.memory={at}",
        ]
        talk += ["-M", f"{alias}.memorised={memorised}"]
        answer += [
            "-m",
            f"{alias}=bot/student",
            "-M",
            f"{alias}.knowledge={known / 100 if at < 7 else 0.93}",
        ]
    roles = ("--role", "interactor=bot/interactor", "--role", "evaluator=bot/evaluator")
    command("run", "kieval", *talk, *roles, "--items", 40, "--name", "talks", cwd=folder)
    command("run", "qa", *answer, "--name", "answers", cwd=folder)
    return folder


def test_memorisers_are_suspected_from_the_command(fleet):
    (fleet / "s.csv").write_text("model,MT-Bench\nh30,3.5\nh90,9\n")
    wish = ("--scores", "s.csv", "--without", "c7", "--without", "c8", "--control", "c7=h30")
    data = command("report", "talks", "answers", *wish, "--json", cwd=fleet).json
    assert data["schema"] == "parley.report/1"
    levels = {one["model"]: one["below"]["level"] for one in data["contamination"]["standings"]}
    assert {model for model, level in levels.items() if level == "suspected"} == {"c7", "c8"}
    cell = next(cell for cell in data["cells"] if cell["model"] == "c7")
    assert (cell["accuracy_from"], cell["accuracy"]["n"], cell["kieval_played"]["n"]) == (
        "benchmark",
        64,
        40,
    )
    assert set(cell["signatures"]) == {"kieval", "qa"}
    everybody, without = (
        row["correlation"] for row in data["correlations"] if row["dataset"] == "samples"
    )
    assert without["r"] > 0.9 > everybody["r"]
    (control,) = data["matched"]
    assert control["accuracy"]["low"] > 0
    assert control["excess"]["low"] > 0
    assert data["columns"]["MT-Bench"]["h90"] == 9


def test_a_page_and_tables_from_the_command(fleet):
    done = command("report", "talks", "answers", "-o", "r.html", cwd=fleet)
    assert (done.out, "written to r.html" in done.err) == ("", True)
    words = " ".join(checked((fleet / "r.html").read_text(encoding="utf-8")).words)
    assert "Suspected of contamination: c7, c8." in words
    assert "Suspected" in command("report", "talks", "answers", cwd=fleet).out
    rows = list(
        csv.DictReader(
            io.StringIO(command("report", "talks", "answers", "--format", "csv", cwd=fleet).out)
        )
    )
    measured = [row for row in rows if row["measure"] == "kieval_zero"]
    assert len(measured) == 9
    assert all(
        row["low"] and row["high"] and row["n"] == "40" and row["signature"].startswith("kieval|")
        for row in measured
    )


def test_interviews_alone_are_enough_and_say_so(fleet):
    out = command("report", "talks", cwd=fleet).out
    assert "`first answers` means that no benchmark was run" in out


def test_the_page_of_one_run_begins_with_what_was_found_and_repeats_nothing(fleet):
    command("report", "talks", "--no-audit", "-o", "one.html", cwd=fleet)
    page = (fleet / "one.html").read_text(encoding="utf-8")
    assert page.index('<p class="lead">') < page.index("<h2>Result</h2>")
    assert page.index("<h2>Result</h2>") < page.index("<h2>Contamination</h2>")
    assert page.count("<h2>How interviews ended</h2>") == 1
    assert page.index("<h2>Result</h2>") < page.index("<h2>Models and datasets</h2>")
    # both suspects have their words and their two intervals, and no scale goes beyond 100
    scatter = page.partition("samples: KIEval score against accuracy")[2].partition("</figure>")[0]
    assert scatter.count(", suspected</text>") == 4  # wide and narrow
    assert scatter.count('class="thin ') == 8
    assert not {">110<", ">120<", ">−20<"} & set(re.findall(r">[−\d]+<", scatter))
    # a model has the same sign here and in the result
    signs = re.findall(r'<g class="dot (\w+)" [^>]*>(.{0,60}?)</g><text [^>]*>c7<', page)
    assert len(signs) > 3
    assert len(set(signs)) == 1


def test_two_models_have_no_correlation():
    two = [ModelPoint("a", "quiz", 50.0, 40.0), ModelPoint("b", "quiz", 70.0, 80.0)]
    found = SimpleNamespace(correlations=correlation_rows(two))
    assert correlation_tables(found, Style()) == []
    words = correlation_words(found, Style())
    assert "needs at least 3 models" in words
    assert "There are 2 here" in words


@pytest.mark.slow
def test_of_runs_made_otherwise_the_newest_can_be_taken(fleet):
    again = command(
        "rejudge",
        "talks",
        "--role",
        "evaluator=bot/evaluator",
        "-M",
        "evaluator.noise=0.5",
        "--json",
        cwd=fleet,
    )
    assert "both measure c7 on samples" in command("report", "talks", "last", cwd=fleet, code=2).err
    data = command("report", "last", "talks", "--newest", "--json", cwd=fleet).json
    assert [each["run"] for each in data["runs"]] == [again.json["run"]["id"]]
    assert {run for cell in data["cells"] for run in cell["runs"]} == {again.json["run"]["id"]}
    # what the other run has cost is no part of it
    assert {row["role"] for row in data["cost"]} == {"evaluator"}
    assert any("newer runs replace them" in line for line in data["cautions"])


def test_faults_of_the_command_are_told(fleet):
    looked = next(
        path.name for path in (fleet / "runs").glob("qa-*") if path.name not in answers(fleet)
    )
    assert (
        "it has no scores and is left out"
        in command("report", "talks", f"runs/{looked}", cwd=fleet).out
    )
    for wish, said in (
        (("--control", "c7=nobody"), "unknown model 'nobody'"),
        (("--control", "c7"), "--control needs KEY=VALUE"),
        (("--reference", "x"), "unknown model 'x'"),
        (("--without", "x"), "unknown model 'x'"),
        (("--scores", "none.csv"), "none.csv cannot be read"),
        (("--control", "c7=c7"), "another model than the suspect"),
    ):
        assert said in command("report", "talks", *wish, cwd=fleet, code=2).err


def answers(fleet):
    """The file of the run called answers."""
    found = command("ls", "--json", cwd=fleet).json
    return [f"{each['id']}.parley" for each in found if each["name"] == "answers"]
