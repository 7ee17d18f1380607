"""Documents of aligned segments in IWSLT's format: one XML file per language, in one folder."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from parley.errors import UsageError

NAME = re.compile(
    r"(?P<stem>.+)\.(?P<source>\w+)-(?P<target>\w+)\.(?P<language>\w+)\.xml(?P<packed>\.gz)?"
)
MARK = re.compile(r"<!--|<!\[CDATA\[|<!ENTITY\b|</?doc(?![\w:.-])|</?seg(?![\w:.-])", re.IGNORECASE)
TAG = re.compile(r"[^<>]*>")
CLOSING = {"<!--": "-->", "<![cdata[": "]]>"}
Segments = dict[tuple[str, str], str]  # by document and id


def is_translation_of_another(file: Path) -> bool:
    """Whether a file is the translation of another file in the same folder."""
    named = NAME.fullmatch(file.name)
    if named is None or named["language"] != named["target"]:
        return False
    return any(place.exists() for place in possible_parallel_files(file, named, named["source"]))


def aligned_segments(file: Path, read: Callable[[Path], str]) -> Iterator[dict[str, Any]]:
    """The segments of a source file, each with its translation from the other file."""
    named = NAME.fullmatch(file.name)
    if named is None or named["language"] not in (named["source"], named["target"]):
        raise UsageError(
            f"dataset {file}: expected two files whose names look like NAME.en-zh.en.xml and "
            "NAME.en-zh.zh.xml"
        )
    source, target = (parallel_file(file, named, named[which]) for which in ("source", "target"))
    texts, references = (parse_segments(read(each), each) for each in (source, target))
    if missing := next((key for key in texts if key not in references), None):
        raise UsageError(
            f"dataset {target}: document {missing[0]} has no segment {missing[1]}, but "
            f"{source.name} has one: both files need the same segments"
        )
    if extra := next((key for key in references if key not in texts), None):
        raise UsageError(
            f"dataset {source}: document {extra[0]} has no segment {extra[1]}, but "
            f"{target.name} has one: both files need the same segments"
        )
    for key, text in texts.items():
        yield {
            "translation": {named["source"]: text, named["target"]: references[key]},
            "document": key[0],
        }


def parallel_file(file: Path, named: re.Match[str], language: str) -> Path:
    """The file of the same text in one of its two languages."""
    found = next(
        (place for place in possible_parallel_files(file, named, language) if place.exists()), None
    )
    if found is None:
        wanted = possible_parallel_files(file, named, language)[0].name
        raise UsageError(
            f"dataset {file}: Parley needs the files of both languages, but {wanted} is not in "
            "the same folder"
        )
    return found


def possible_parallel_files(file: Path, named: re.Match[str], language: str) -> list[Path]:
    name = f"{named['stem']}.{named['source']}-{named['target']}.{language}.xml"
    return [file.with_name(name), file.with_name(f"{name}.gz")]


def parse_segments(text: str, file: Path) -> Segments:
    """All segments in order. Only the tags are parsed, because published files are not always
    well-formed XML.

    A bare & or < inside a segment is text. A segment that is not closed, empty or outside a
    document is an error, because a lost or merged segment would no longer match its translation.
    """
    found: Segments = {}
    document, segment, begun = "", None, 0
    parts: list[str] = []
    past = 0  # the end of what has been read

    def wrong(place: int, what: str) -> UsageError:
        within = f"document {document}: " if document else ""
        return UsageError(
            f"dataset {file}, line {text.count(chr(10), 0, place) + 1}: {within}{what}"
        )

    while mark := MARK.search(text, past):
        kind = mark[0].lower()
        if segment is not None:
            parts.append(html.unescape(text[past : mark.start()]))
        past = mark.end()
        if kind in CLOSING:
            closed = text.find(CLOSING[kind], past)
            if closed < 0:
                raise wrong(mark.start(), f"{mark[0]} is not closed by {CLOSING[kind]}")
            parts += [text[past:closed]] if kind == "<![cdata[" else []
            past = closed + len(CLOSING[kind])
        elif kind == "<!entity":
            raise wrong(
                mark.start(), "XML entity definitions are not supported: write out the entities"
            )
        elif kind == "</seg":
            if segment is None:
                raise wrong(mark.start(), "</seg> without a <seg> before it")
            found[document, segment] = " ".join("".join(parts).split())
            if not found[document, segment]:
                raise wrong(begun, f"segment {segment} is empty")
            segment = None
        elif segment is not None:
            raise wrong(
                begun, f"segment {segment} is not closed by </seg> before the next {mark[0]}"
            )
        elif kind == "</doc":
            document = ""
        else:
            tag = TAG.match(text, past)
            if tag is None:
                raise wrong(mark.start(), f"{mark[0]} is not closed by >")
            past = tag.end()
            if kind == "<doc":
                document = attribute_value(tag[0], "docid")
                continue
            segment, begun, parts = attribute_value(tag[0], "id"), mark.start(), []
            if not document or not segment:
                what = "has no id" if document else "is not inside a <doc> with a docid"
                raise wrong(begun, f"segment {segment or len(found) + 1} {what}")
            if (document, segment) in found:
                raise wrong(begun, f"two segments have the id {segment}: give each its own id")
            if tag[0].endswith("/>"):
                raise wrong(begun, f"segment {segment} is empty")
    if segment is not None:
        raise wrong(begun, f"segment {segment} is not closed by </seg>")
    if not found:
        raise UsageError(
            f'dataset {file}: no segments were found; expected <doc docid="…"> with <seg id="…"> '
            "inside"
        )
    return found


def attribute_value(tag: str, name: str) -> str:
    found = re.search(rf"(?<![\w:.-]){name}\s*=\s*[\"']([^\"']*)[\"']", tag, re.IGNORECASE)
    return found[1].strip() if found else ""
