"""What a notebook shows: the first part of a report in its own style, and text."""

import pytest

from parley import run
from parley.report.for_result import notebook_style

MODELS = {"a": "bot/free-rider", "b": "bot/random"}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    return run("public_goods", models=MODELS, rounds=2, repeats=3, store=folder)


@pytest.fixture(scope="module")
def unscored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unscored")
    return run("public_goods", models=MODELS, max_calls=1, concurrency=1, store=folder)


def test_a_bundle_has_html_and_text(found):
    bundle = found._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"] == repr(found)
    assert bundle["text/html"] == found._repr_html_()
    assert list(found._repr_mimebundle_(include={"text/plain"})) == ["text/plain"]
    assert list(found._repr_mimebundle_(exclude={"text/plain"})) == ["text/html"]


def test_the_html_is_the_first_part_of_the_report(found):
    html = found._repr_html_()
    order = ["<header>", 'class="lead"', 'class="chip', 'class="facts"', '<div class="drawings"']
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
    style = notebook_style()
    assert ":root" not in style
    depth, ends = 0, []  # nothing follows the rule of the container
    for at, sign in enumerate(style):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        ends += [at] if sign == "}" and depth == 0 else []
    assert style.startswith(".parley-result{")
    assert ends == [len(style) - 1]


def test_a_model_name_stays_text_in_a_notebook(tmp_path):
    models = {"<img src=x>": "bot/random", "b": "bot/random"}
    html = run("public_goods", models=models, rounds=1, repeats=2, store=tmp_path)._repr_html_()
    assert "<img" not in html
    assert "&lt;img" in html


def test_without_a_result_there_is_nothing_to_draw(unscored):
    bundle = unscored._repr_mimebundle_()
    assert "No match has a score yet, so there is no result." in bundle["text/html"]
    assert '<div class="drawings' not in bundle["text/html"]


def test_a_key_in_the_name_of_a_model_is_not_shown_as_text(tmp_path, monkeypatch):
    key = "kq7Zt2Lw9Xv4Bn8Rm3Hs6Dy1"
    bots = {"ann": "bot/random", "bob": "bot/random", key: "bot/random"}
    found = run("public_goods", bots, repeats=1, store=tmp_path)
    assert key in found._repr_mimebundle_()["text/plain"]
    monkeypatch.setenv("OPENAI_API_KEY", key)
    assert key not in found._repr_mimebundle_()["text/plain"]


def test_tables_in_a_notebook_are_those_of_pages_without_secrets(tmp_path, monkeypatch):
    key = "kq7Zt2Lw9Xv4Bn8Rm3Hs6Dy1"
    bots = {"<b>": "bot/random", "bob": "bot/free-rider", key: "bot/random"}
    found = run("public_goods", bots, repeats=2, store=tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    for table in (found.table(), *found.tables("pairs")):
        shown = table._repr_html_()
        assert key not in shown + repr(table)
        assert "[key]" in shown
        assert "&lt;b&gt;" in shown
        assert "<b>" not in shown
        assert f"<caption>{table.title}</caption>" in shown or not table.title
    assert "−" in found.tables("pairs")[0]._repr_html_()  # a true minus sign, as on pages
