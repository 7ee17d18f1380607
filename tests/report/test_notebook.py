"""What a notebook shows: the first part of a report in its own style, text, and Vega-Lite."""

import json
import re

import pytest

from parley import run
from parley.report.for_result import notebook_style

MODELS = {"a": "bot/free-rider", "b": "bot/random"}
VEGA_LITE = "application/vnd.vegalite.v5+json"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    return run("public_goods", models=MODELS, rounds=2, repeats=3, store=folder)


@pytest.fixture(scope="module")
def unscored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unscored")
    return run("public_goods", models=MODELS, max_calls=1, concurrency=1, store=folder)


def test_a_bundle_has_html_text_and_vega_lite(found):
    bundle = found._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", VEGA_LITE}
    assert bundle["text/plain"] == repr(found)
    assert bundle["text/html"] == found._repr_html_()
    assert list(found._repr_mimebundle_(include={"text/plain"})) == ["text/plain"]
    assert VEGA_LITE not in found._repr_mimebundle_(exclude={VEGA_LITE})


def test_the_html_is_the_first_part_of_the_report(found):
    html = found._repr_html_()
    order = ["<header>", 'class="lead"', 'class="chip', 'class="facts"', '<table class="chart">']
    places = [html.index(each) for each in order if each != 'class="chip']
    assert places == sorted(places)
    assert "href=" not in html  # the sections that chips lead to are not in a notebook
    assert "id=" not in html
    assert "<h1" not in html
    assert "<h2" not in html.replace("<h2>Read this first</h2>", "")


def test_the_style_stays_inside_its_container(found):
    html = found._repr_html_()
    assert html.startswith('<div class="parley-result"><style>')
    assert html.endswith("</div>")
    rules = re.findall(r"([^{}]+)\{", re.sub(r"@media[^{]*\{", "", notebook_style()))
    assert rules
    assert all(rule.strip().startswith(".parley-result") for rule in rules)
    assert ":root" not in notebook_style()


def test_a_model_name_stays_text_in_a_notebook(tmp_path):
    models = {"<img src=x>": "bot/random", "b": "bot/random"}
    html = run("public_goods", models=models, rounds=1, repeats=2, store=tmp_path)._repr_html_()
    assert "<img" not in html
    assert "&lt;img" in html


def test_vega_lite_has_its_data_inline_with_interval_n_and_signature(found):
    spec = found.vega_lite()
    assert spec["$schema"] == "https://vega.github.io/schema/vega-lite/v5.json"
    json.dumps(spec, allow_nan=False)
    rows = {row["alias"]: row for row in found.data["results"] if row["metric"] == "payoff"}
    values = {value["model"]: value for value in spec["data"]["values"]}
    assert set(values) == {"a", "b"}
    for alias, value in values.items():
        row = rows[alias]
        assert (value["mean"], value["low"], value["high"]) == (
            row["mean"],
            row["low"],
            row["high"],
        )
        assert value["n"] == row["matches"]
        assert value["signature"] == row["signature"]
    (panel,) = spec["vconcat"]
    fields = set(values["a"])
    for layer in panel["layer"]:
        used = [part.get("field") for part in layer["encoding"].values() if isinstance(part, dict)]
        assert set(filter(None, used)) <= fields
        assert layer["encoding"]["y"]["sort"]["order"] == "descending"
    interval, mean = panel["layer"]
    assert interval["mark"]["type"] == "rule"
    assert (interval["encoding"]["x"]["field"], interval["encoding"]["x2"]["field"]) == (
        "low",
        "high",
    )
    assert mean["mark"]["type"] == "point"


def test_a_missing_score_is_null_and_not_drawn(found):
    (panel,) = found.vega_lite()["vconcat"]
    for layer in panel["layer"]:
        (only,) = layer["transform"]
        assert only["filter"] == {"field": layer["encoding"]["x"]["field"], "valid": True}


def test_without_a_result_there_is_nothing_to_draw(unscored):
    bundle = unscored._repr_mimebundle_()
    assert VEGA_LITE not in bundle
    assert "No match has a score yet, so there is no result." in bundle["text/html"]
    assert '<table class="chart">' not in bundle["text/html"]


def test_a_key_in_the_name_of_a_model_is_not_shown_as_text(tmp_path, monkeypatch):
    key = "kq7Zt2Lw9Xv4Bn8Rm3Hs6Dy1"
    bots = {"ann": "bot/random", "bob": "bot/random", key: "bot/random"}
    found = run("public_goods", bots, repeats=1, store=tmp_path)
    assert key in found._repr_mimebundle_()["text/plain"]
    monkeypatch.setenv("OPENAI_API_KEY", key)
    assert key not in found._repr_mimebundle_()["text/plain"]
