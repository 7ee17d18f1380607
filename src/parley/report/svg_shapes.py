"""The shapes of small drawings, written with fixed places, sizes and colours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape

from parley.errors import ParleyError
from parley.report.style_rules import Element, compute_style, read_length

Style = Mapping[str, str]
STROKED = (
    "fill", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "stroke-dasharray",
    "fill-opacity", "stroke-opacity", "opacity", "paint-order",
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Where a drawing lies in the file: its corner, its size, and the scale of its own units."""

    x: float
    y: float
    width: float  # in its own units
    height: float
    across: float = 1.0
    down: float = 1.0

    def inside(self, element: Element) -> Place:
        """The place of what an svg element holds, by its viewBox."""
        box = element.attributes.get("viewbox")
        if not box:
            return self
        left, top, width, height = (float(each) for each in re.split(r"[\s,]+", box.strip()))
        across, down = self.width * self.across / width, self.height * self.down / height
        x, y = self.x, self.y
        if element.attributes.get("preserveaspectratio") != "none":
            least = min(across, down)
            x += (across - least) * width / 2
            y += (down - least) * height / 2
            across = down = least
        return Place(x - left * across, y - top * down, width, height, across, down)

    def nested(self, element: Element) -> Place:
        """The place of an svg element inside this one."""
        x = self.length(element, "x", self.width)
        y = self.length(element, "y", self.height)
        width = self.length(element, "width", self.width, self.width)
        height = self.length(element, "height", self.height, self.height)
        corner = self.x + x * self.across, self.y + y * self.down
        return Place(*corner, width, height, self.across, self.down).inside(element)

    def length(self, element: Element, name: str, whole: float, otherwise: float = 0.0) -> float:
        text = element.attributes.get(name, "")
        if not text:
            return otherwise
        if text.endswith("%"):
            return float(text[:-1]) * whole / 100
        return read_length(text)

    def point(self, x: float, y: float) -> tuple[float, float]:
        return self.x + x * self.across, self.y + y * self.down


def draw_children(element: Element, style: Style, place: Place) -> Iterator[str]:
    for child in element.elements:
        own = compute_style(child, style)
        if child.tag in ("title", "desc") or own.get("display") == "none":
            continue
        yield from draw_shape(child, own, place)


def draw_shape(shape: Element, style: Style, place: Place) -> Iterator[str]:
    """A shape with fixed places."""
    given = shape.attributes
    look = describe_look(style)

    def corner(x: str, y: str) -> tuple[float, float]:
        across = place.length(shape, x, place.width)
        return place.point(across, place.length(shape, y, place.height))

    match shape.tag:
        case "svg":
            yield from draw_children(shape, style, place.nested(shape))
        case "g" | "a":
            if "transform" in given:
                raise ParleyError("a figure with `transform` cannot be written to a file")
            yield from draw_children(shape, style, place)
        case "line":
            (x1, y1), (x2, y2) = corner("x1", "y1"), corner("x2", "y2")
            yield f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}"{look}/>'
        case "rect":
            x, y = corner("x", "y")
            width = place.length(shape, "width", place.width) * place.across
            height = place.length(shape, "height", place.height) * place.down
            size = f'width="{width:.2f}" height="{height:.2f}"'
            yield f'<rect x="{x:.2f}" y="{y:.2f}" {size}{look}/>'
        case "circle":
            x, y = corner("cx", "cy")
            r = place.length(shape, "r", place.width)
            radii = f'rx="{r * place.across:.2f}" ry="{r * place.down:.2f}"'
            yield f'<ellipse cx="{x:.2f}" cy="{y:.2f}" {radii}{look}/>'
        case "polyline" | "polygon":
            numbers = [float(each) for each in re.findall(r"-?[\d.]+", given.get("points", ""))]
            pairs = zip(numbers[::2], numbers[1::2], strict=True)
            corners = " ".join(
                f"{x:.2f},{y:.2f}" for x, y in (place.point(*each) for each in pairs)
            )
            yield f'<{shape.tag} points="{corners}"{look}/>'
        case "path":
            scale = (
                ""
                if place.across == place.down == 1
                else f" scale({place.across:g} {place.down:g})"
            )
            turn = f'transform="translate({place.x:.2f} {place.y:.2f}){scale}"'
            yield f'<path d="{escape(given.get("d", ""))}" {turn}{look}/>'
        case "text":
            x, y = corner("x", "y")
            words = "".join(child for child in shape.children if isinstance(child, str))
            anchor = style.get("text-anchor", "start")
            points = read_length(style["font-size"])
            yield (
                f'<text x="{x:.2f}" y="{y:.2f}" font-size="{points:g}"{weigh(style)} '
                f'text-anchor="{anchor}"{look}>{escape(words)}</text>'
            )
        case other:
            raise ParleyError(f"a figure with <{other}> cannot be written to a file")


def describe_look(style: Style) -> str:
    """Colours and strokes as attributes. A stroke keeps its width in a stretched drawing."""
    found = []
    for name in STROKED:
        value = style.get(name, "")
        if not value or value == "0":
            continue
        if name == "stroke-width":
            value = f"{read_length(value):g}"
        found.append(f' {name}="{escape(value)}"')
    return "".join(found)


def weigh(style: Style) -> str:
    weight = style.get("font-weight", "400")
    return f' font-weight="{escape(weight)}"' if weight != "400" else ""
