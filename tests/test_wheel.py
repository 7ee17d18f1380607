"""The page of the package on PyPI, which the build makes from the README."""

import re
import shutil
import subprocess
import sys
from email import message_from_bytes, policy
from pathlib import Path
from zipfile import ZipFile

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
ADDRESS = "https://example.org/parley/blob/main/"


def build_metadata(folder, out):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = out.glob("*.whl")
    with ZipFile(wheel) as files:
        (name,) = (each for each in files.namelist() if each.endswith(".dist-info/METADATA"))
        return message_from_bytes(files.read(name), policy=policy.default)


def parse(text):
    """The headings of a Markdown text, and the targets of its links and pictures."""
    headings, links, pictures = [], [], []
    blocks = MarkdownIt("commonmark").enable("table").parse(text)
    for at, block in enumerate(blocks):
        if block.type == "heading_open":
            headings.append(blocks[at + 1].content)
        for each in block.children or ():
            if each.type == "link_open":
                links.append(each.attrs["href"])
            elif each.type == "image":
                pictures.append(each.attrs["src"])
    return headings, links, pictures


README = parse((ROOT / "README.md").read_text(encoding="utf-8"))


def build_with_address(address, tmp_path):
    """Build the package with a value of its one setting for the address of the repository."""
    place = tmp_path / "checkout"
    (place / "src" / "parley").mkdir(parents=True)
    for name in ("README.md", "LICENSE", "src/parley/__init__.py"):
        shutil.copy(ROOT / name, place / name)
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    setting = re.compile(r"(?<=replacement = '\]\()[^']*(?=' },  # ADDRESS)")
    settings, count = setting.subn(address, settings)
    assert count == 1
    (place / "pyproject.toml").write_text(settings, encoding="utf-8")
    return build_metadata(place, tmp_path)


def test_the_description_has_no_link_that_leads_nowhere(tmp_path):
    metadata = build_metadata(ROOT, tmp_path)
    assert metadata["Description-Content-Type"] == "text/markdown"
    headings, links, pictures = parse(metadata.get_content())
    assert headings == README[0]
    assert len(headings) > 5
    assert [each for each in links + pictures if not each.startswith("https://")] == []


def test_without_an_address_links_become_plain_text(tmp_path):
    text = build_with_address("", tmp_path).get_content()
    headings, links, pictures = parse(text)
    assert headings == README[0]
    assert links == [link for link in README[1] if link.startswith("https://")]
    assert pictures == []
    assert "](" not in re.sub(r"\]\(https://", "", text)


def test_with_an_address_links_become_absolute(tmp_path):
    headings, links, pictures = parse(build_with_address(ADDRESS, tmp_path).get_content())
    assert headings == README[0]
    assert links == [link if "://" in link else ADDRESS + link for link in README[1]]
    assert pictures == [f"{ADDRESS}{picture}?raw=true" for picture in README[2]]
    assert len(links) > 10
    assert len(pictures) == 2
