"""Whatever a run contains is text on every page of the site, without keys."""

import parley
from tests.report.test_html import HOSTILE, KEY, Odd, Parsed
from tests.web.conftest import HOST


def test_hostile_names_and_keys_stay_text_on_every_page(visit, tmp_path, monkeypatch):
    models = {HOSTILE: lambda view: HOSTILE + "\u202e", "b": lambda view: f"```\n{HOSTILE}\n```"}
    parley.run(Odd(), models, repeats=2, store=tmp_path, name=HOSTILE)
    monkeypatch.setenv("SOME_API_KEY", KEY)
    monkeypatch.setattr("parley.web.live_run_page.PATIENCE", 60)
    client = visit(tmp_path)
    (path,) = tmp_path.glob("*.parley")
    run = f"/run/{path.stem}"
    for address in ("/", run, f"{run}/matches", f"{run}/match/1", f"{run}/match/1?beside=2"):
        text = client.get(address, headers={"host": HOST}).text
        page = Parsed(text)
        assert page.tags.count(("script", "src", "defer")) == 1, address
        assert page.tags.count("/script") == 1, address
        assert KEY not in "".join(page.words), address
        assert "\u202e" not in text, address
        assert "{{ 7*7 }}" in text, address
