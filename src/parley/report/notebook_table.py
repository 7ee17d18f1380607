"""Tables that a notebook shows as pages do."""

from __future__ import annotations

from parley.providers._secrets import make_secret_filter
from parley.tables import Table


class NotebookTable(Table):
    """A table for scripts and notebooks, which show it without secrets."""

    def __repr__(self) -> str:
        return make_secret_filter()(str(self))

    def _repr_html_(self) -> str:
        from parley.report.for_result import render_table  # late: not every script draws

        return render_table(self)


def for_notebook(table: Table) -> NotebookTable:
    return NotebookTable(**vars(table))
