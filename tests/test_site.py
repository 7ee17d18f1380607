"""The documentation site: its search finds what people look for, and its API page is complete."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from lunr import lunr

import parley

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    """Search the built site as its search box does: the page of the best match first."""
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    documents = json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    fields = [{"field_name": "title", "boost": 1000}, "text"]
    boosted = [(each, {"boost": each.get("boost", 1)}) for each in documents if each["location"]]
    index = lunr("location", fields, boosted)

    def find(words):
        pages = [each["ref"].partition("#")[0] for each in index.search(words)]
        return list(dict.fromkeys(pages))

    return find


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("random seed", "concepts/"),
        ("rate limit", "guides/budget/"),
        ("confidence interval", "guides/results/"),
        ("resume", "guides/resume/"),
        ("own dataset", "guides/datasets/"),
    ],
)
def test_search_finds_the_right_page(search, words, page):
    assert page in search(words)[:3]


def test_the_api_page_has_every_public_name():
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^::: parley\.([\w.]+)\.(\w+)$", page, re.MULTILINE)
    assert {name: home for home, name in listed} == {
        name: home for name, home in parley._HOME.items() if name != "Scores"
    }
