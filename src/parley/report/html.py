"""The one Jinja environment: pages of reports, of the viewer, of voting and of playing.

Whatever a template writes passes `finalize`: secrets are masked, hidden characters are shown, and
the environment escapes it. `Markup` passes as it is, so the filters that make it clean their words
before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from parley import __version__
from parley.providers._secrets import make_secret_filter
from parley.report.fenced_code import split_fences
from parley.report.model_signs import ModelSigns
from parley.report.svg import DrawingError, draw, minus
from parley.results.types import Figure
from parley.tables import plural, show_hidden

TEMPLATES = files("parley.report").joinpath("templates")


def make_cleaner() -> Callable[[str], str]:
    """A function that masks secrets in a text and shows its hidden characters, for pages."""
    without_secrets = make_secret_filter()
    return lambda text: show_hidden(without_secrets(text))


def render(template: str, signs: ModelSigns | None = None, **facts: Any) -> Markup:
    """A template with these facts; `signs` are those of the models on the page."""
    facts |= {"clean": make_cleaner(), "signs": signs or ModelSigns()}
    return Markup(environment().get_template(template).render(facts))


@cache
def environment() -> Environment:
    """The environment of all templates."""
    made = Environment(
        loader=FileSystemLoader(str(TEMPLATES)),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "said": say,
        "said_text": say_text,
        "model": show_model,
        "sign": show_sign,
        "draw": draw_figure,
        "code": set_code,
        "minus": set_minus,
        "plural": plural,
    }
    made.globals |= {"version": __version__}
    return made


@cache
def read_style() -> str:
    """The style sheet of all pages."""
    parts = (TEMPLATES.joinpath(name) for name in ("style.css", "figure.css"))
    return "".join(part.read_text(encoding="utf-8") for part in parts)


@cache
def read_file_style() -> str:
    """The style of a figure in a file: the rules of drawings, with the light colours in place of
    variables, which programs for SVG do not know."""
    colours = dict[str, str]()
    for name, value in re.findall(r"--([\w-]+):([^;}]+)", read_style()):
        colours.setdefault(name, value)  # the light ones come first
    rules = read_style().rpartition("/* What the drawings")[2].partition("*/")[2]
    return re.sub(r"var\(--([\w-]+)\)", lambda found: colours[found[1]], rules)


@pass_context
def finalize(context: Context, value: object) -> object:
    """What a template writes, clean; the environment escapes it."""
    if type(value) is int or hasattr(value, "__html__"):  # `Markup` is clean
        return value
    return context["clean"](str(value))


# Filters. Templates that import macros do so "with context", because filters need it.


@pass_context
def say(context: Context, text: object) -> Markup:
    """What a model, a person or a file said, isolated in direction."""
    return Markup(f"<bdi>{escape(context['clean'](str(text)))}</bdi>")


@pass_context
def say_text(
    context: Context, text: str, words: Sequence[str] = (), inside: bool = False
) -> Markup:
    """The same for a whole message: fenced code in a block of its own, some words marked. `inside`
    says that the text begins within such a block."""
    clean = context["clean"]
    pattern = "|".join(re.escape(clean(each)) for each in words if each)
    shown = []
    for is_code, part in split_fences(clean(text), inside):
        if not part.strip():
            continue
        pieces = re.split(f"({pattern})", part) if pattern else [part]
        marked = [
            f"<mark>{escape(piece)}</mark>" if at % 2 else escape(piece)
            for at, piece in enumerate(pieces)
        ]
        said_part = f"<bdi>{''.join(marked)}</bdi>"
        shown.append(f"<pre>{said_part}</pre>" if is_code else said_part)
    return Markup("".join(shown))


@pass_context
def set_code(context: Context, text: str) -> Markup:
    """Words in which those between backticks are set as code."""
    written = escape(context["clean"](text))
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", written))


@pass_context
def set_minus(context: Context, text: str) -> str:
    """Words whose negative numbers have a true minus sign. They are clean before, because a secret
    may have a hyphen before a digit."""
    return minus(context["clean"](text)) if "-" in text else text


@pass_context
def show_model(context: Context, alias: str, label: str | None = None) -> Markup:
    """A label, after the sign of the contestant that it names."""
    name = say(context, label or alias)
    if alias not in context["signs"].places:
        return name
    return Markup(f'<span class="who">{context["signs"].sign(alias)}{name}</span>')


@pass_context
def show_sign(context: Context, alias: str) -> Markup:
    """The sign of a model; a grey ring for an instrument."""
    return Markup(context["signs"].sign(alias))


@pass_context
def draw_figure(context: Context, figure: Figure, signs: ModelSigns | None = None) -> Markup | str:
    """A figure in these colours, by default in those of the models on the page; a sentence if its
    numbers cannot be drawn."""
    try:
        return Markup(draw(figure, context["clean"], signs or context["signs"]))
    except DrawingError as wrong:
        return f"This figure cannot be drawn ({wrong})."
