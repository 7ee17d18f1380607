"""Figures of parts: what is drawn is what was computed, and what is unknown is left out."""

import sqlite3
from collections import Counter
from contextlib import closing
from types import SimpleNamespace

import pytest

import parley
from parley.money import Price
from parley.results.part import Style
from parley.results.parts.cost import Cost, CostRow, cost_figures
from parley.results.parts.efficiency import (
    EfficiencyRow,
    compute_efficiency,
    efficiency_figures,
    join_costs,
)
from parley.results.parts.judges import Incomplete, JudgedModel, JudgeReport, judge_figures
from parley.results.parts.passes import PassRate, pass_figures
from parley.results.parts.roles import (
    MarginMean,
    PairCell,
    PairScore,
    RoleTableResult,
    TableMeans,
    role_table_figures,
)
from parley.results.parts.rounds import RoundScore, round_figures
from parley.results.parts.stability import (
    HalfWidth,
    Look,
    MetricPath,
    StabilityResult,
    progress_figures,
    stability_figures,
)
from parley.results.scores import RunScores
from parley.results.types import ScoreRow
from parley.store import read_run
from parley.store.types import MedianLatency

NOTHING = MarginMean(None, None, None, 0, 0)


def spent(alias, role, usd, tokens=None, calls=1):
    counts = (tokens, None, None, tokens, None)
    return CostRow(alias, role, calls, *counts, 0, usd, usd or 0.0)


def test_cost_by_role_is_in_usd_only_if_all_of_it_is_known():
    known = Cost(
        (spent("a", "writer", 2.0), spent("a", "editor", 1.0), spent("j", "judge", 5.0)), ()
    )
    (bars,) = cost_figures(known, Style())
    assert [(bar.label, bar.pieces) for bar in bars.bars] == [
        ("j", {"judge": 5.0}),
        ("a", {"writer": 2.0, "editor": 1.0}),
    ]
    partly = Cost((spent("a", "writer", None, 30), spent("j", "judge", 5.0, 20)), ())
    (bars,) = cost_figures(partly, Style())
    assert (bars.unit, bars.bars[0].pieces) == ("tokens", {"writer": 60})
    uncounted = Cost((spent("a", "writer", None, None, 7), spent("j", "judge", 5.0, 20, 3)), ())
    (bars,) = cost_figures(uncounted, Style())
    assert (bars.unit, [bar.pieces for bar in bars.bars]) == (
        "calls",
        [{"writer": 7}, {"judge": 3}],
    )
    assert cost_figures(Cost((), ()), Style()) == []


def score(alias, mean):
    facts = ("x", [], "writer", "bleu", "", mean, 0.1, 0.9, None, None, 5, 5, 0, 0, "")
    return ScoreRow(alias, *facts)


def test_scores_stand_beside_cost_and_latency_where_these_are_known():
    rows = [score("a", 0.5), score("b", 0.6), score("c", 0.7)]
    usd = {("a", "writer"): 2.0, ("b", "writer"): None, ("c", "writer"): 0.0}
    played = {("a", "writer"): 4, ("b", "writer"): 4, ("c", "writer"): 4}
    latencies = {("b", "writer"): MedianLatency(1.5, 8)}
    found = tuple(join_costs(rows, usd, played, latencies))
    assert [row.usd_per_match for row in found] == [0.5, None, 0.0]
    assert [row.latency for row in found] == [None, 1.5, None]
    (cost,) = efficiency_figures(found, Style())  # one model with a latency compares nothing
    assert [(dot.label, dot.x, dot.y, dot.y_low, dot.y_high) for dot in cost.dots] == [
        ("a", 0.5, 0.5, 0.1, 0.9),
        ("c", 0.0, 0.7, 0.1, 0.9),
    ]
    assert "not known for b" in cost.title
    latencies[("a", "writer")] = MedianLatency(0.5, 8)
    _, latency = efficiency_figures(tuple(join_costs(rows, usd, played, latencies)), Style())
    assert [(dot.label, dot.x) for dot in latency.dots] == [("a", 0.5), ("b", 1.5)]
    assert "not known for c" in latency.title


def test_a_run_of_bots_has_no_cost_to_compare():
    free = {("a", "writer"): 0.0}
    assert tuple(join_costs([score("a", 0.5)], free, {("a", "writer"): 4}, {})) == ()
    unscored = EfficiencyRow("a", "writer", "bleu", None, None, None, 1.0, None, 0, 1)
    assert efficiency_figures((unscored,), Style()) == []


def test_latencies_are_medians_by_model_and_role(tmp_path):
    played = parley.run("public_goods", ["bot/altruist", "bot/gradual"], repeats=1, store=tmp_path)
    assert played.part("efficiency") == ()
    with closing(sqlite3.connect(played.path)) as connection:
        (seat,) = connection.execute("SELECT MIN(seat) FROM calls").fetchone()
        connection.execute("UPDATE calls SET latency = round WHERE seat = ?", (seat,))
        connection.commit()
    with read_run(played.ref) as reader:
        (found,) = reader.usage.median_latencies().values()
    assert found == MedianLatency(3.0, 5)  # rounds 1 to 5; the other seat has none


def make_priced(file):
    """Turn the calls of a run of bots into calls of a model: 1,000 input tokens each."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE calls SET tokens_in = 1000, tokens_out = 0, latency = 1.0")
        connection.commit()


def efficiency_at_one_dollar(played):
    """The part `efficiency` if every call has 1,000 tokens at 1,000 USD per million."""
    make_priced(played.path)
    price = Price.flat(1000.0, 0.0, source="test")
    with read_run(played.ref) as reader:
        run = RunScores(reader)
        run.prices = SimpleNamespace(of=lambda alias, served=None: price)
        return compute_efficiency(run), reader.usage.called_matches()


def test_cost_per_match_of_a_stopped_run_is_over_the_matches_that_were_called(tmp_path):
    """With sequential stopping, scores are over complete blocks only; the cost is not."""
    played = parley.run(
        "public_goods",
        {"a": "bot/altruist", "b": "bot/gradual", "c": "bot/free-rider"},
        rounds=3,
        until_stable=True,
        max_calls=40,
        concurrency=1,
        store=tmp_path,
    )
    assert played.state == "stopped"
    with read_run(played.ref) as reader:
        calls = Counter(
            (row.alias, row.seat.role) for row in reader.usage.by_model() for _ in range(row.calls)
        )
    found, called = efficiency_at_one_dollar(played)
    whole = {row.alias: row.matches for row in played.part("results")}
    assert found
    for row in found:
        assert row.matches == called[row.alias, row.role]
        assert row.usd_per_match == pytest.approx(calls[row.alias, row.role] / row.matches)
        assert row.usd_per_match <= 3 * 2  # rounds, and both seats at most
    assert any(row.matches > whole[row.alias] for row in found)


def test_a_model_with_two_seats_pays_for_a_match_once(tmp_path):
    models = {"a": "bot/altruist", "b": "bot/altruist"}
    played = parley.run("public_goods", models, rounds=3, repeats=2, store=tmp_path)
    with closing(sqlite3.connect(played.path)) as connection:
        connection.execute("""UPDATE matches SET seats = replace(seats, '"b"', '"a"')""")
        connection.commit()
    (row,), _ = efficiency_at_one_dollar(played)
    assert (row.alias, row.matches) == ("a", 2)
    assert row.usd_per_match == 6.0  # 3 rounds of 2 seats


def judged(role, alias, mean, value):
    return JudgedModel(role, alias, "bleu", mean, 4.0, 6.0, value, 0.2, 0.4)


def test_judges_stand_against_what_was_measured():
    models = (judged("writer", "a", 5.0, 0.3), judged("writer", "b", None, 0.9))
    found = JudgeReport("judge", (), Incomplete(0, 0), (), (), (), (), models)
    style = Style(bounds={"bleu": (0.0, 1.0), "judge": (1.0, 10.0)})
    (scatter,) = judge_figures(found, style)
    (dot,) = scatter.dots  # a model without votes is not drawn
    assert (dot.label, dot.x, dot.x_low, dot.x_high) == ("a", 0.3, 0.2, 0.4)
    assert (dot.y, dot.y_low, dot.y_high) == (5.0, 4.0, 6.0)
    assert (scatter.x_bounds, scatter.y_bounds) == ((0.0, 1.0), (1.0, 10.0))


def test_pairs_are_maps_for_the_roles_that_a_metric_ranks():
    cell = PairScore(0.5, 0.8, 3, 3, (0, 0), 0.4, 0.6, 0.7, 0.9)
    cells = (PairCell("a", "b", cell), PairCell("b", "a", None))
    margins = {"a": NOTHING, "b": NOTHING}
    table = RoleTableResult(
        "bleu", 3, "writer", "editor", cells, margins, margins, TableMeans(NOTHING, NOTHING)
    )
    (first,) = role_table_figures([table], Style(leading={"writer": "bleu", "editor": "gain"}))
    assert (first.rows, first.columns, first.values) == (("a",), ("b",), ((0.5,),))
    assert (first.low, first.high, first.digits) == (((0.4,),), ((0.6,),), 3)
    both = role_table_figures([table], Style(leading={"writer": "bleu", "editor": "bleu"}))
    assert [figure.values for figure in both] == [((0.5,),), ((0.8,),)]
    assert role_table_figures([table], Style(leading={"writer": "gain"})) == []


def test_pass_at_k_is_drawn_for_the_leading_metric_and_more_than_one_k():
    def rate(metric, k, mean):
        return PassRate("coder", "a", metric, k, mean, mean - 0.1, mean + 0.1, 6, 3)

    style = Style(leading={"coder": "pass"})
    found = [rate("pass", 1, 0.5), rate("pass", 3, 0.8), rate("pass_1", 1, 0.2)]
    (lines,) = pass_figures(found, style)
    assert (lines.series[0].x, lines.series[0].y) == ((1.0, 3.0), (0.5, 0.8))
    assert lines.y_bounds == (0.0, 1.0)
    assert pass_figures(found[:1], style) == []


@pytest.mark.parametrize(("roles", "label"), [(["coder"], "a"), (["coder", "tester"], "a, coder")])
def test_lines_of_rounds_belong_to_their_model(roles, label):
    found = [
        RoundScore(role, "a", f"pass_{number}", 0.5, None, None, 6, 6, 0, number)
        for role in roles
        for number in (1, 2)
    ]
    (lines,) = round_figures(found, Style(bounds={"pass_1": (0.0, 1.0)}))
    assert (lines.title, lines.series[0].label, lines.series[0].model) == (
        "pass by round",
        label,
        "a",
    )


def test_a_path_has_its_target():
    looks = tuple(Look(n, n, (HalfWidth("players", "a", 8 / n),)) for n in (1, 2, 4))
    path = MetricPath("payoff", 4.5, looks)
    (lines,) = stability_figures(
        StabilityResult(4.5, 0.05, "new_items", None, "each", (path,)), Style()
    )
    assert (lines.target, lines.target_label) == (4.5, "target: 4.5")
    assert (lines.series[0].x, lines.series[0].y) == ((1.0, 2.0, 4.0), (8.0, 4.0, 2.0))


def test_a_bar_is_full_when_a_half_width_has_reached_its_target():
    widths = (HalfWidth("x", "a", 8.0), HalfWidth("x", "b", 2.0), HalfWidth("x", "c", None))
    path = MetricPath("payoff", 4.0, (Look(3, 9, widths),))
    (bars,) = progress_figures(StabilityResult(4.0, 0.05, "new_items", None, "each", (path,)))
    assert bars.title == "Half-width of payoff after 3 blocks; target: 4"
    assert bars.most == 1.0
    assert [(bar.label, *bar.pieces.values(), bar.note) for bar in bars.bars] == [
        ("a", 0.5, "±8.000, not yet"),
        ("b", 1.0, "±2.000, reached"),
        ("c", 0.0, "–, not yet"),
    ]
