"""Reads the style sheet of reports: for drawings without a style sheet, and for pages of others.

It knows the part of CSS that `STYLE` uses: types, classes, attributes, `:is`, `:first-child`,
`:nth-child(-n+K)`, descendants, children and siblings, custom properties and `color-mix`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple


def own_style() -> str:
    """The part of the style sheet that reports use."""
    from parley.report.html import read_style

    return read_style().partition("/* What pages have beyond reports. */")[0]


INHERITED = frozenset(
    [
        "color", "fill", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin",
        "stroke-dasharray", "fill-opacity", "stroke-opacity", "font-size", "font-weight",
        "text-anchor", "text-align", "paint-order",
    ]
)  # fmt: skip
NUMBER = re.compile(r"-?\d*\.?\d+")


@dataclass(eq=False)
class Element:
    """An element of a page."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    parent: Element | None = None
    children: list[Element | str] = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    @property
    def elements(self) -> list[Element]:
        return [child for child in self.children if isinstance(child, Element)]

    @property
    def place(self) -> int:
        """The place among its siblings, from 1."""
        return self.parent.elements.index(self) + 1 if self.parent else 1


class StyleRule(NamedTuple):
    """A selector and what it declares; `media` is the condition that it stands under."""

    selector: str
    declarations: dict[str, str]
    media: str = ""


def parse_style(text: str, media: str = "") -> Iterator[StyleRule]:
    """The rules of a style sheet, one for each selector."""
    at = 0
    while (start := text.find("{", at)) >= 0:
        head, depth, end = text[at:start].strip(), 1, start + 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        body, at = text[start + 1 : end - 1], end
        if head.startswith("@media"):
            yield from parse_style(body, head)
            continue
        pairs = [line.partition(":") for line in split_outside(body, ";") if line.strip()]
        found = {name.strip(): value.strip() for name, _, value in pairs}
        for selector in split_outside(head, ","):
            yield StyleRule(selector.strip(), found, media)


def split_outside(text: str, mark: str) -> list[str]:
    """Split at a mark that stands outside of brackets and quotes."""
    parts, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == '"'
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
        if letter == mark and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


@cache
def light_rules() -> tuple[tuple[int, StyleRule], ...]:
    """The rules for a wide light page by their specificity, weakest first."""
    rules = [
        (measure_specificity(rule.selector), rule)
        for rule in parse_style(own_style())
        if not rule.media
    ]
    return tuple(sorted(rules, key=lambda each: each[0]))


def measure_specificity(selector: str) -> int:
    """Classes, attributes and pseudo-classes count more than types."""
    strong = len(re.findall(r"[.\[:]", selector))
    return 100 * strong + len(re.findall(r"(?:^|[\s>+])[a-z]", selector))


def scope_style(text: str, within: str) -> str:
    """A style sheet that applies only inside the elements that the selector `within` finds; what
    it says about the page applies to these elements themselves."""
    parts, open_media = list[str](), ""
    for rule in parse_style(text):
        if rule.media != open_media:
            parts.append(("}" if open_media else "") + (f"{rule.media}{{" if rule.media else ""))
            open_media = rule.media
        whole = rule.selector in (":root", "html", "body")
        selector = within if whole else f"{within} {rule.selector}"
        declared = ";".join(f"{name}:{value}" for name, value in rule.declarations.items())
        parts.append(f"{selector}{{{declared}}}")
    return "".join(parts) + ("}" if open_media else "")


# Selectors.


def matches(element: Element, selector: str) -> bool:
    """Whether a selector without commas finds an element."""
    return match_steps(element, split_steps(selector))


@cache
def split_steps(selector: str) -> tuple[tuple[str, str], ...]:
    """The steps of a selector: how each relates to the one before, and what it asks for."""
    step = r"\s*([>+]?)\s*((?:[^\s>+(\[]|\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\]]*\])+)"
    return tuple(re.findall(step, selector))


def match_steps(element: Element, steps: tuple[tuple[str, str], ...]) -> bool:
    before, (relation, compound) = steps[:-1], steps[-1]
    if not match_compound(element, compound):
        return False
    if not before:
        return True
    parent = element.parent
    if relation == ">":
        return parent is not None and match_steps(parent, before)
    if relation == "+":
        at = element.place - 2
        return parent is not None and at >= 0 and match_steps(parent.elements[at], before)
    while parent is not None:
        if match_steps(parent, before):
            return True
        parent = parent.parent
    return False


def match_compound(element: Element, compound: str) -> bool:
    """Whether an element has the type, classes, attributes and pseudo-classes of a selector."""
    for part in re.findall(r"::?[\w-]+(?:\([^()]*\))?|\.[\w-]+|\[[^\]]*\]|[\w-]+|\*", compound):
        if part == "*" or part == element.tag:
            continue
        if part.startswith(".") and part[1:] in element.classes:
            continue
        if part.startswith("["):
            name, _, value = part[1:-1].partition("=")
            found = element.attributes.get(name)
            if found is not None and (not value or found == value.strip("\"'")):
                continue
        if part.startswith(":is(") and any(
            matches(element, each.strip()) for each in split_outside(part[4:-1], ",")
        ):
            continue
        if part == ":first-child" and element.place == 1:
            continue
        if (most := re.fullmatch(r":nth-child\(-n\+(\d+)\)", part)) and element.place <= int(
            most[1]
        ):
            continue
        return False
    return True


# Values.


def compute_style(element: Element, inherited: Mapping[str, str]) -> dict[str, str]:
    """The style of an element: what it inherits, its own attributes, then the rules that find it.
    Variables and `currentColor` are replaced."""
    found = {
        name: value
        for name, value in inherited.items()
        if name in INHERITED or name.startswith("--")
    }
    own = {name: value for name, value in element.attributes.items() if name in INHERITED}
    for _, rule in light_rules():
        if matches(element, rule.selector):
            own |= expand_shorthands(rule.declarations)
    custom = {name: value for name, value in own.items() if name.startswith("--")}
    found |= custom
    own = {name: resolve(value, found) for name, value in own.items() if name not in custom}
    if "color" in own:
        found["color"] = own["color"]
    for name, value in own.items():
        found[name] = found.get("color", "#000") if value.lower() == "currentcolor" else value
    return found


def root_style() -> dict[str, str]:
    """The variables of the light page, and the style of its text."""
    found: dict[str, str] = {}
    for _, rule in light_rules():
        if rule.selector == ":root":
            found |= {name: value for name, value in rule.declarations.items() if name[:2] == "--"}
    return found | {"color": found["--ink"], "font-size": "16px", "font-weight": "400"}


def expand_shorthands(declared: Mapping[str, str]) -> dict[str, str]:
    """Declarations with the size and the weight of `font` on their own."""
    found = dict(declared)
    if font := found.pop("font", ""):
        sizes = re.findall(r"(?<![\w.])[\d.]+(?:px|rem|em)", font)
        weights = re.findall(r"(?<!\S)[1-9]00(?!\S)", font)
        found |= {"font-size": sizes[0]} if sizes else {}
        found |= {"font-weight": weights[0] if weights else "400"}
    return found


def resolve(value: str, known: Mapping[str, str]) -> str:
    """A value without variables and mixed colours."""
    while "var(" in value:
        name = value[value.index("var(") + 4 : value.index(")", value.index("var("))]
        value = value.replace(f"var({name})", known.get(name, ""), 1)
    if value.startswith("color-mix("):
        inner = value[value.index(",") + 1 : -1]
        first, second = (part.split() for part in inner.split(","))
        share = float(first[1].rstrip("%")) / 100 if len(first) > 1 else 0.5
        return mix_colours(first[0], second[0], share)
    return value


def mix_colours(first: str, second: str, share: float) -> str:
    """Two colours mixed in sRGB."""
    mixed = [
        round(share * a + (1 - share) * b)
        for a, b in zip(read_colour(first), read_colour(second), strict=True)
    ]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def read_colour(text: str) -> list[int]:
    """Red, green and blue of a colour such as #fff or #1b5e9e."""
    digits = text.lstrip("#")
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    return [int(digits[at : at + 2], 16) for at in (0, 2, 4)]


def read_length(text: str, font: float = 16.0) -> float:
    """A length in pixels."""
    found = NUMBER.match(text)
    if found is None:
        return 0.0
    unit = text[found.end() :]
    return float(found[0]) * {"rem": 16.0, "em": font}.get(unit, 1.0)
