"""The result of a run: parts, tables, JSON, CSV and data frames, computed from the run's file
alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

from parley.errors import ParleyError, UsageError, unknown_name
from parley.money import FindPrice
from parley.results.match_json import describe_all_matches
from parley.results.part import (
    RunPart,
    Style,
    general_parts,
    make_rows_table,
    parts_of_task,
    qualified_name,
    style_of,
)
from parley.results.parts.results import score_table
from parley.results.remarks import (
    REMARKS,
    list_cautions,
    list_part_notes,
    list_remarks,
)
from parley.results.run_facts import (
    collect_run_facts,
    count_programs,
    count_violations,
    list_earlier_seals,
    list_open_batches,
    unfinished_models,
)
from parley.results.scores import RunScores
from parley.results.stored_parts import (
    find_stored_parts,
    make_stored_tables,
    parse_stored,
    read_stored_figures,
    read_stored_rows,
)
from parley.results.types import Figure, LeftOut, ResultHead, RunFactsInResult, as_json
from parley.rules.notes import decode
from parley.rules.task import Task
from parley.store import find_run, read_run
from parley.store.types import RunInfo, RunRef, StoredPart
from parley.tables import Table, break_lines, show_hidden, terminal_width

T = TypeVar("T")
SIGNED = "results"  # the part with the signature, which stands below the tables of every part


class ReadFacts(NamedTuple):
    """What a result has besides its parts, from one reading of the run."""

    head: ResultHead
    style: Style
    digest: str
    stored: dict[str, StoredPart]


class RunResult:
    """The result of a run so far. `interval="bootstrap"` asks for a bootstrap over blocks instead
    of Student's t.

    `scores` is a file with external scores (a column `alias`, and columns of scores) for the part
    `external`. `task` is the class of the task; with it the task's own parts are computed, without
    it the stored ones are shown.
    """

    def __init__(
        self,
        run: RunRef | str | Path,
        interval: str = "block",
        reasoned: bool = True,
        scores: str | Path | None = None,
        look_up: FindPrice | None = None,
        task: type[Task] | None = None,
    ) -> None:
        """`reasoned`: whether the table says why a run stopped. `look_up` finds prices that the run
        did not record."""
        self.ref = run if isinstance(run, RunRef) else find_run(run)
        self.reasoned, self._method = reasoned, interval
        self._scores, self._look_up, self._given_task = scores, look_up, task
        self._facts: ReadFacts | None = None
        self._computed: dict[str, Any] = {}
        self.shows_stored = True  # parts that are stored with the run
        self.failures: dict[str, str] = {}  # parts that could not be computed, and why

    # The run.

    @cached_property
    def task(self) -> type[Task] | None:
        """The class of the task; None if it was not given."""
        return self._given_task

    @contextmanager
    def open_scores(self) -> Iterator[RunScores]:
        """The scores of the run, with the interval and the files of this result; its record is open
        meanwhile."""
        with read_run(self.ref) as reader:
            yield RunScores(reader, self._method, self._look_up, self._scores)

    @cached_property
    def info(self) -> RunInfo:
        """The id and the configuration of the run, read without its scores. A run that is being
        played may have changed its state since."""
        with read_run(self.ref) as reader:
            return reader.info

    def _read_facts(self) -> ReadFacts:
        """What was read with the first parts; if none was computed yet, read it."""
        if self._facts is None:
            with self.open_scores() as run:
                self._facts = self._facts_of(run)
        return self._facts

    def _facts_of(self, run: RunScores) -> ReadFacts:
        style = style_of(run, run.ranks, run.results)
        found = find_stored_parts(run.reader, self.task, self.parts)
        return ReadFacts(collect_head(run), style, run.info.digest, found)

    @property
    def head(self) -> ResultHead:
        """Everything in a result besides its parts."""
        return self._read_facts().head

    @property
    def style(self) -> Style:
        """How tables and figures of this result are drawn."""
        return self._read_facts().style

    @property
    def path(self) -> Path:
        """The file of the run; `UsageError` if it is in a database."""
        path = self.ref.path
        if path is None:
            raise UsageError(f"{self.ref.location} is in a database: it has no file")
        return path

    @property
    def digest(self) -> str:
        """The digest of the whole record when the run last stopped; empty if it has none."""
        return self._read_facts().digest

    @property
    def state(self) -> str:
        """running, done, stopped or failed; all but `done` mean that the result is partial."""
        return self.head.run.state

    @property
    def matches(self) -> list[dict[str, Any]]:
        """Every match with its seats, scores, violations and transcript."""
        with read_run(self.ref) as reader:
            return describe_all_matches(reader)

    # Parts.

    @cached_property
    def parts(self) -> dict[str, RunPart]:
        """The parts that this result can have, by name: general ones, then the task's own."""
        own = parts_of_task(self.task)
        for part in own:
            if part.name in {each.name for each in general_parts()}:
                raise ParleyError(
                    f"the task's part `{part.name}` has the same name as a built-in part: "
                    "rename the task's part"
                )
        return {part.name: part for part in (*general_parts(), *own)}

    @property
    def stored(self) -> dict[str, StoredPart]:
        """Stored results of parts that cannot be computed here. They are not verified: the author
        of the file may have written anything. Keys are part names, or TASK.PART if a name is taken.
        They never hide a part that can be computed."""
        return self._read_facts().stored if self.shows_stored else {}

    def compute(self, names: Iterable[str] | None = None) -> None:
        """Compute these parts, or all that apply to the run, if they were not computed yet."""
        wanted = [
            part
            for name, part in self.parts.items()
            if name not in self._computed and (names is None or name in names)
        ]
        if not wanted:
            return
        with self.open_scores() as run:
            if self._facts is None:
                self._facts = self._facts_of(run)
            for part in wanted:
                self._computed[part.name] = self._compute(part, run)

    def _compute(self, part: RunPart, run: RunScores) -> Any:
        """Compute one part. If a task's own part fails, the others are not affected."""

        def checked() -> Any:
            found = part.compute(run) if part.applies(run.info) else None
            if found is not None and part not in general_parts():
                # check that it returns the declared type
                decode(part.publish(found), part.result, part.name)
            return found

        found = self._guard(part, checked)
        empty = () if part.is_sequence else None
        return empty if found is None else found

    def _guard(self, part: RunPart, work: Callable[[], T]) -> T | None:
        """Call code of a part. If a task's own part fails, record the failure and return None."""
        if part in general_parts():
            return work()
        try:
            return work()
        except Exception as wrong:
            self.failures[part.name] = show_hidden(f"{type(wrong).__name__}: {wrong}")
            return None

    def _read_stored(self, name: str, read: Callable[[StoredPart], list[T]]) -> list[T]:
        """Read a stored part; one that is damaged is a failure of this part alone."""
        try:
            return read(self.stored[name])
        except ParleyError as wrong:
            self.failures[name] = show_hidden(str(wrong))
            return []

    def part(self, name: str) -> Any:
        """The data of a part, of the type that its `result` declares; None or () if there is
        none."""
        if name not in self.parts:
            raise unknown_name("part", name, [*self.parts, *self.stored])
        self.compute([name])
        self._refuse_failed(name)
        return self._computed[name]

    def _refuse_failed(self, name: str) -> None:
        if name in self.failures:
            raise ParleyError(
                f"part `{name}` of the result could not be computed: {self.failures[name]}"
            )

    # Tables, words and figures.

    def table(self, metrics: str | Sequence[str] = ()) -> Table:
        """The models, the best mean first: interval, n and notes. By default each role has the
        metric that it is ranked by; `metrics` may be "all", or names."""
        self.compute(REMARKS)
        results = self.part("results")
        if not results:
            return Table(["model", "mean"], [], note="\n".join(self.remarks()))
        table = score_table(results, self.style, self._choose_metrics(metrics))
        return replace(table, note="\n".join(filter(None, [table.note, *self.remarks()])))

    def _choose_metrics(self, wanted: str | Sequence[str]) -> list[str]:
        """The metrics that were asked for by name."""
        known = list(dict.fromkeys(row.metric for row in self.part("results")))
        if wanted == "all":
            return known
        names = wanted.split(",") if isinstance(wanted, str) else list(wanted)
        for name in filter(None, names):
            if name not in known:
                raise unknown_name("metric", name, known)
        return [name for name in names if name]

    def tables(self, name: str) -> list[Table]:
        """The tables of a part; none if the run has no data for it."""
        if name in self.stored:
            return self._read_stored(name, make_stored_tables)
        self.compute([name, SIGNED])
        part, found, style = self.parts[name], self._computed[name], self.style
        if not found:
            return []
        return self._guard(part, lambda: checked_tables(part.tables(found, style))) or []

    def words(self, name: str) -> str:
        """The introduction of a part; empty if it has none."""
        if name in self.stored:
            return ""
        self.compute([name])
        part, found, style = self.parts[name], self._computed[name], self.style
        words = self._guard(part, lambda: str(part.words(found, style))) if found else ""
        return show_hidden(words or "")

    def figures(self, name: str) -> list[Figure]:
        """The figures of a part."""
        if name in self.stored:
            return self._read_stored(name, read_stored_figures)
        self.compute([name])
        part, found, style = self.parts[name], self._computed[name], self.style
        if not found:
            return []
        kinds = get_args(Figure)
        return self._guard(part, lambda: checked_list(part.figures(found, style), kinds)) or []

    def remarks(self) -> list[str]:
        """The notes below the main table: state of the run, violations, cost, signature."""
        return list_remarks(self)

    def cautions(self) -> list[str]:
        """What to know before reading a number: an unfinished run, missing votes, unsafe code."""
        return list_cautions(self)

    # Output.

    def render(
        self,
        form: str = "text",
        part: str = "results",
        *,
        metrics: str | Sequence[str] = (),
        width: int | None = None,
    ) -> str:
        """A part of the result as text, Markdown, LaTeX or CSV; CSV is unrounded.

        `metrics`: the metrics of the main table (see `table`); `width`: the width of the text in
        columns.
        """
        if part not in self.parts and part not in self.stored:
            raise unknown_name("part", part, [*self.parts, *self.stored])
        if form == "csv":
            return self._csv(part)
        if part == "results":
            self.compute(REMARKS)
            if not self.part("results"):
                return break_lines("\n".join(self.remarks()), width)
            return self.table(metrics).render(form, width)
        tables, words = self.tables(part), self.words(part)
        self._refuse_failed(part)
        if not tables:
            nothing = f"part `{part}`: the stored result is empty"
            return show_hidden(self.parts[part].absent) if part in self.parts else nothing
        *first, last = tables
        notes = filter(None, [last.note, *list_part_notes(self, part)])
        last = replace(last, note="\n".join(notes))
        intro = [break_lines(words, width) if form == "text" else words] if words else []
        try:
            return "\n\n".join([*intro, *(each.render(form, width) for each in [*first, last])])
        except (TypeError, ValueError, IndexError, AttributeError) as wrong:
            raise ParleyError(f"the table of part `{part}` cannot be printed: {wrong}") from wrong

    def _csv(self, name: str) -> str:
        """The rows of a part, unrounded."""
        if name in self.parts:
            part, found = self.parts[name], self.part(name)
            rows = self._guard(
                part, lambda: [dict(row) for row in part.rows(found)] if found else []
            )
            self._refuse_failed(name)
            if name != SIGNED and rows:
                signature = self.part(SIGNED)[0].signature if self.part(SIGNED) else None
                rows = [{**row, "signature": signature} for row in rows]
        else:
            rows = [row for table in read_stored_rows(self.stored[name]) for row in table]
        return make_rows_table(rows).render("csv") if rows else ""

    @cached_property
    def data(self) -> dict[str, Any]:
        """The whole result, in the form that `--json` prints (schema parley.result/1)."""
        self.compute()
        found: dict[str, Any] = as_json(self.head)
        for part in general_parts():
            found |= part.keys(self._computed[part.name])
        task = self.head.run.task
        found["parts"] = {
            qualified_name(part, task): (
                {"error": self.failures[part.name]}
                if part.name in self.failures
                else part.publish(self._computed[part.name])
            )
            for part in self.parts.values()
            if part not in general_parts()
        } | {stored.name: parse_stored(stored.data, stored) for stored in self.stored.values()}
        found["stored_parts"] = sorted(stored.name for stored in self.stored.values())
        return found

    def to_pandas(self) -> Any:
        """The results as a pandas data frame."""
        return import_frames("pandas").DataFrame(as_json(self.part("results")))

    def to_polars(self) -> Any:
        """The results as a polars data frame."""
        rows = as_json(self.part("results"))
        return import_frames("polars").DataFrame(rows, infer_schema_length=None)

    def __repr__(self) -> str:
        return f"{self.head.run.id} ({self.state})\n{self.render(width=terminal_width())}"


def collect_head(run: RunScores) -> ResultHead:
    """Everything in a result besides its parts."""
    reader = run.reader
    return ResultHead(
        run=RunFactsInResult(
            **vars(collect_run_facts(reader)),
            unfinished=list(unfinished_models(reader)),
            open_batches=list_open_batches(reader),
            earlier_seals=list_earlier_seals(reader),
        ),
        digits={name: metric.digits for name, metric in run.metrics.items()},
        leading={role: name for role in run.roles if (name := run.ranking_metric(role))},
        violations=count_violations(reader),
        left_out=tuple(LeftOut(**each) for each in reader.usage.unsupported_options()),
        ranks=run.ranks,
        programs=count_programs(reader),
        identical=run.identical,
        shown=None if run.main_stage is None else run.main_stage.text,
    )


def checked_list(given: Any, kinds: type[T] | tuple[type[T], ...]) -> list[T]:
    """What a part returned, as a list; a TypeError if it has values of other types."""
    names = " or ".join(kind.__name__ for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
    if isinstance(given, kinds):
        raise TypeError(f"expected a list of {names}, found a single {type(given).__name__}")
    found = list(given)
    for each in found:
        if not isinstance(each, kinds):
            raise TypeError(f"expected a list of {names}, found {each!r:.80} in the list")
    return found


def checked_tables(given: Any) -> list[Table]:
    """The tables that a part returned; a TypeError if a cell is not text."""
    found = checked_list(given, Table)
    for table in found:
        for cell in chain(table.header, *table.rows):
            if not isinstance(cell, str):
                raise TypeError(f"the cells of a table must be text, found {cell!r:.80}")
    return found


def import_frames(library: str) -> Any:
    """Import an optional library for data frames."""
    try:
        return import_module(library)
    except ImportError:
        raise UsageError(f"{library} is not installed: pip install 'parley-eval[frames]'") from None
