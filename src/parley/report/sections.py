"""Tables and data without secrets; a table as HTML."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from parley.report.html import NEGATIVE, environment
from parley.report.looks import Looks
from parley.report.svg import Clean
from parley.tables import Table

__all__ = ["NEGATIVE", "clean_data", "clean_table", "draw_table"]


def clean_table(table: Table, clean: Clean) -> Table:
    """A table without any secret in it."""
    rows = [[clean(cell) for cell in row] for row in table.rows]
    header = [clean(cell) for cell in table.header]
    note, title = clean(table.note), clean(table.title)
    return replace(table, header=header, rows=rows, note=note, title=title)


def clean_data(value: Any, clean: Clean) -> Any:
    """Plain data without any secret in it."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(name): clean_data(each, clean) for name, each in value.items()}
    return [clean_data(each, clean) for each in value] if isinstance(value, list) else value


def draw_table(table: Table, name: str, clean: Clean) -> str:
    """A table that scrolls by itself where it is wider than the page."""
    parts = environment().get_template("parts.html")
    macros: Any = parts.make_module({"clean": clean, "looks": Looks()})
    return str(macros.table(table, name))
