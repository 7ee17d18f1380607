"""The result of a run: every number with n, interval and signature, computed from the run's file
alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from math import floor, log10
from pathlib import Path
from typing import Any, TypeVar, get_args

import orjson

from parley import __version__
from parley.errors import ParleyError, UsageError, unknown_name
from parley.money import FindPrice, cost_remarks, is_free
from parley.results.part import (
    RunPart,
    Style,
    general_parts,
    make_rows_table,
    parts_of_task,
    qualified_name,
    style_of,
)
from parley.results.parts.evolve import describe_gains
from parley.results.parts.main_table import describe_unprotected, score_table
from parley.results.parts.resolved_pairs import describe_resolved
from parley.results.parts.stability import describe_paths
from parley.results.scores import (
    RunScores,
    collect_run_facts,
    count_violations,
    describe_earlier_seals,
    describe_identical,
    describe_left_out,
    describe_open_batches,
    describe_unfinished,
    describe_workers,
    list_earlier_seals,
    list_open_batches,
    unfinished_models,
)
from parley.results.types import (
    FIGURES,
    Figure,
    LeftOut,
    Programs,
    ResultHead,
    RunFactsInResult,
    ViolationCount,
    as_json,
    json_schema,
)
from parley.rules.notes import decode
from parley.rules.task import Task
from parley.store import (
    NOBODY,
    WAITING,
    RunReader,
    RunRef,
    StoredPart,
    find_run,
    read_run,
)
from parley.tables import Table, break_lines, plural, round_half_up, terminal_width

T = TypeVar("T")
UNSAFE = (
    "UNSAFE: model-written code ran without a sandbox, so a program could have changed "
    "anything on this machine, including these numbers"
)
# parts that the notes of the main table use
REMARKS = ("results", "stability", "judges", "rejudged", "cost", "resolved_pairs")
RANKED = ("pairs", "ratings")  # other parts that rank models
SIGNED = "results"  # the part with the signature, which stands below the tables of every part


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
        self._method, self._reasoned = interval, reasoned
        self._scores, self._look_up, self._given_task = scores, look_up, task
        self._computed: dict[str, Any] = {}
        self.failures: dict[str, str] = {}  # parts that could not be computed, and why

    # Contents.

    @cached_property
    def task(self) -> type[Task] | None:
        """The class of the task; None if it was not given."""
        return self._given_task

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

    @cached_property
    def stored(self) -> dict[str, StoredPart]:
        """Stored results of parts that cannot be computed here. They are not verified: the author
        of the file may have written anything. Keys are part names, or TASK.PART if a name is taken.
        They never hide a part that can be computed."""
        with read_run(self.ref) as reader:
            return self._find_stored(reader)

    def _find_stored(self, reader: RunReader) -> dict[str, StoredPart]:
        task, kept = reader.info.identity["task"], reader.part_results()
        own = {qualified_name(part, task) for part in parts_of_task(self.task)}
        rest = [each for each in kept if is_part_of_task(each) and each.name not in own]
        short = [stored.name.rpartition(".")[2] for stored in rest]
        return {
            name if short.count(name) == 1 and name not in self.parts else stored.name: stored
            for name, stored in zip(short, rest, strict=True)
        }

    @cached_property
    def head(self) -> ResultHead:
        """Everything in a result besides its parts."""
        with self.open_scores() as run:
            return self._head(run.reader, run)

    @contextmanager
    def open_scores(self) -> Iterator[RunScores]:
        """The scores of the run, with the interval and the files of this result; its record is open
        meanwhile."""
        with read_run(self.ref) as reader:
            yield RunScores(reader, self._method, self._look_up, self._scores)

    def _head(self, reader: RunReader, run: RunScores) -> ResultHead:
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
            left_out=tuple(LeftOut(**each) for each in reader.unsupported_options()),
            ranks=run.ranks,
            programs=count_programs(reader),
            identical=run.identical,
            shown=None if run.main_stage is None else run.main_stage.text,
        )

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
            if "head" not in self.__dict__:
                self.__dict__["head"] = self._head(run.reader, run)
                self.__dict__["style"] = style_of(run, run.ranks)
                self.__dict__["digest"] = run.info.digest
                self.__dict__.setdefault("stored", self._find_stored(run.reader))
            for part in wanted:
                self._computed[part.name] = self._compute(part, run)

    def _compute(self, part: RunPart, run: RunScores) -> Any:
        """Compute one part. If a task's own part fails, the others are not affected."""
        empty = () if part.is_sequence else None

        def checked() -> Any:
            found = part.compute(run) if part.applies(run.info) else None
            if found is not None and part not in general_parts():
                # check that it returns the declared type
                decode(part.publish(found), part.result, part.name)
            return found

        found = self._guard(part, checked)
        return empty if found is None else found

    def _guard(self, part: RunPart, work: Callable[[], T]) -> T | None:
        """Call code of a part. If a task's own part fails, record the failure and return None."""
        if part in general_parts():
            return work()
        try:
            return work()
        except Exception as wrong:
            self.failures[part.name] = f"{type(wrong).__name__}: {wrong}"
            return None

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

    # Output.

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
        } | {stored.name: stored_data(stored.data, stored) for stored in self.stored.values()}
        found["stored_parts"] = sorted(stored.name for stored in self.stored.values())
        return found

    @property
    def path(self) -> Path:
        """The file of the run; `UsageError` if it is in a database."""
        path = self.ref.path
        if path is None:
            raise UsageError(f"{self.ref.location} is in a database: it has no file")
        return path

    @cached_property
    def digest(self) -> str:
        """The digest of the whole record when the run last stopped; empty if it has none."""
        with read_run(self.ref) as reader:
            return reader.info.digest

    @property
    def state(self) -> str:
        """running, done, stopped or failed; all but `done` mean that the result is partial."""
        return self.head.run.state

    @property
    def matches(self) -> list[dict[str, Any]]:
        """Every match with its seats, scores, violations and transcript."""
        with read_run(self.ref) as reader:
            scores = reader.scores_by_match()
            people: dict[int, list[dict[str, Any]]] = {}
            for said in reader.people_verdicts():
                people.setdefault(said.match, []).append(said.to_dict())
            return [
                {
                    **match.to_dict(),
                    "scores": {seat.key: by for seat, by in scores.get(match.number, {}).items()},
                    "violations": [each.to_dict() for each in reader.violations(match.number)],
                    "notes": [note.to_dict() for note in reader.notes_of(match.number)],
                    "people_verdicts": people.get(match.number, []),
                    "transcript": reader.messages(match.number),
                }
                for match in reader.matches()
            ]

    @cached_property
    def style(self) -> Style:
        """How tables and figures of this result are drawn."""
        with self.open_scores() as run:
            return style_of(run, run.ranks)

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
            return stored_tables(self.stored[name])
        self.compute([name, SIGNED])
        part, found, style = self.parts[name], self._computed[name], self.style
        if not found:
            return []
        return self._guard(part, lambda: checked_list(part.tables(found, style), Table)) or []

    def words(self, name: str) -> str:
        """The introduction of a part; empty if it has none."""
        if name in self.stored:
            return ""
        self.compute([name])
        part, found, style = self.parts[name], self._computed[name], self.style
        return (self._guard(part, lambda: str(part.words(found, style))) or "") if found else ""

    def figures(self, name: str) -> list[Figure]:
        """The figures of a part."""
        if name in self.stored:
            return stored_figures(self.stored[name])
        self.compute([name])
        part, found, style = self.parts[name], self._computed[name], self.style
        if not found:
            return []
        kinds = get_args(Figure)
        return self._guard(part, lambda: checked_list(part.figures(found, style), kinds)) or []

    def render(
        self,
        form: str = "text",
        part: str = "results",
        *,
        metrics: str | Sequence[str] = (),
        width: int | None = None,
    ) -> str:
        """A part of the result as text, Markdown, LaTeX, HTML or CSV; CSV is unrounded.

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
            return self.parts[part].absent if part in self.parts else nothing
        *first, last = tables
        standing = [] if self.state == "done" else self._standing()
        costs = describe_resolved(self.part("resolved_pairs")) if part in RANKED else []
        notes = [last.note, *standing, *self._unsafe(), *costs, *self.signature_lines()]
        last = replace(last, note="\n".join(filter(None, notes)))
        intro = [break_lines(words, width) if form == "text" else words] if words else []
        try:
            return "\n\n".join([*intro, *(each.render(form, width) for each in [*first, last])])
        except (TypeError, ValueError, IndexError, AttributeError) as wrong:
            raise ParleyError(f"the table of part `{part}` cannot be printed: {wrong}") from wrong

    def _csv(self, part: str) -> str:
        """The rows of a part, unrounded."""
        if part in self.parts:
            found = self.part(part)
            kind = self.parts[part]
            rows = (
                self._guard(kind, lambda: [dict(row) for row in kind.rows(found)]) or []
                if found
                else []
            )
            self._refuse_failed(part)
            if part != "results" and rows:
                signature = self.part("results")[0].signature if self.part("results") else None
                rows = [{**row, "signature": signature} for row in rows]
        else:
            rows = [row for table in stored_rows(self.stored[part]) for row in table]
        if not rows:
            return ""
        return make_rows_table(rows).render("csv")

    # Notes.

    def remarks(self) -> list[str]:
        """The notes below the main table: state of the run, violations, cost, signature."""
        head, lines = self.head, self._reservations()
        if head.violations:
            lines.append(
                "violations (replies that broke the format or a rule): "
                f"{', '.join(map(describe_violations, head.violations))}"
            )
        lines += describe_left_out(head.left_out)
        billed = [row for row in self.part("cost").cost if not is_free(head.run.models[row.alias])]
        lines += cost_remarks([as_json(row) for row in billed])
        lines += describe_resolved(self.part("resolved_pairs"))
        lines += self.signature_lines()
        lines += describe_earlier_seals(head.run.earlier_seals)
        lines += [describe_failure(*each) for each in self.failures.items()]
        return lines

    def cautions(self) -> list[str]:
        """What to know before reading a number: an unfinished run, missing votes, unsafe code."""
        failed = [describe_failure(*each) for each in self.failures.items()]
        return [*self._reservations(), *describe_left_out(self.head.left_out), *failed]

    def _reservations(self) -> list[str]:
        """What limits what the scores say."""
        self.compute(REMARKS)
        head = self.head
        rejudged, judges = self.part("rejudged"), self.part("judges")
        lines = self._standing()
        if head.shown:
            lines += [head.shown, *describe_gains(self.part("evolve"))]
        if rejudged:
            lines.append(
                f"this run rejudges the matches of {rejudged.run} with a new "
                f"{' and '.join(rejudged.roles)}; contestants were not called again"
            )
        if head.run.excluded:
            lines.append(f"excluded models, which did not play: {', '.join(head.run.excluded)}")
        lines += self._unsafe() + describe_programs(head.programs)
        lines += describe_unprotected(self.part("results") or (), self.style)
        if judges and judges.incomplete.matches:
            missing = judges.incomplete
            lines.append(
                f"some judges' votes are missing in {missing.matches} of "
                f"{plural(missing.of, 'match', 'matches')} (see --part judges)"
            )
        if judges and judges.also_play:
            also = ", ".join(judges.also_play)
            lines.append(
                "these judges are also contestants, so they may favour themselves: "
                f"{also} (see --part judges)"
            )
        return [
            *lines,
            *describe_identical(head.identical),
            *describe_paths(self.part("stability")),
        ]

    def signature_lines(self) -> list[str]:
        """The line with the signature of the scores, if there are scores."""
        results = self.part("results")
        return [f"signature: {results[0].signature}"] if results else []

    def _unsafe(self) -> list[str]:
        """The warning for a run whose programs ran without a sandbox."""
        return [UNSAFE] if self.head.run.sandbox == "none" else []

    def _standing(self) -> list[str]:
        """The state of the run and why it stopped."""
        run, stop = self.head.run, self.head.run.stop
        if run.state == "done":
            said = stop.status and stop.reason
            return [f"{str(stop.status).replace('_', ' ')}: {stop.reason}"] if said else []
        # with sequential stopping, the number of matches is not known in advance
        done, planned = run.matches.done, run.matches.planned
        count = plural(done, "match", "matches")
        if not self.style.sequential and planned is not None:
            count = f"{done:,} of {plural(planned, 'match', 'matches')}"
        why = f"; {stop.reason}" if stop.reason and self._reasoned else ""
        if self._reasoned:
            why += describe_resuming(run, self.style.sequential)
        elif run.state == "running":
            why = "; the run is being played, so the numbers still change"
        # an `evolve` run plans a stage when the one before has ended
        far = " planned so far" if self.head.shown and not self.style.sequential else ""
        line = f"{run.state}: {count}{far}{why}"
        return [
            line,
            *describe_unfinished(run.unfinished),
            *describe_open_batches(run.open_batches, run.id, run.state),
        ]

    # For other tools.

    def to_pandas(self) -> Any:
        """The results as a pandas data frame."""
        return import_frames("pandas").DataFrame(as_json(self.part("results")))

    def to_polars(self) -> Any:
        """The results as a polars data frame."""
        rows = as_json(self.part("results"))
        return import_frames("polars").DataFrame(rows, infer_schema_length=None)

    def __repr__(self) -> str:
        return f"{self.head.run.id} ({self.state})\n{self.render(width=terminal_width())}"

    def vega_lite(self) -> dict[str, Any]:
        """The main result as a Vega-Lite specification (v5) with its data: for each model mean,
        low, high, n and signature. Change it, then draw it, for example with
        `altair.Chart.from_dict`."""
        from parley.results.vega_lite import make_vega_lite

        self.compute(REMARKS)
        title = f"{self.head.run.task}: {self.head.run.id}"
        return make_vega_lite(self.part("results") or (), self.style, title)

    def to_stored(self) -> list[StoredPart]:
        """The results of the task's own parts, to be stored in the run's file."""
        own = [part for part in self.parts.values() if part not in general_parts()]
        self.compute([part.name for part in own])
        kept = []
        for part in own:
            figures = self.figures(part.name)
            if part.name in self.failures:
                continue
            kept.append(
                StoredPart(
                    qualified_name(part, self.head.run.task),
                    __version__,
                    orjson.dumps(json_schema(part.result)).decode(),
                    orjson.dumps(part.publish(self._computed[part.name])).decode(),
                    orjson.dumps([as_json(figure) for figure in figures]).decode(),
                )
            )
        return kept


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


def describe_failure(name: str, why: str) -> str:
    """A line on a part that could not be computed."""
    return f"part `{name}` of the result could not be computed: {why}"


def result_schema() -> dict[str, Any]:
    """The JSON schema of `parley.result/1`: the head of a result, and its general parts."""
    schema = json_schema(ResultHead)
    for part in general_parts():
        found = json_schema(part.result)
        if part.spread:
            schema["properties"] |= found["properties"]
            schema["required"] += found["required"]
            continue
        known = found if part.is_sequence else {"anyOf": [found, {"type": "null"}]}
        schema["properties"][part.json_key] = known
        schema["required"].append(part.json_key)
    about = "results of the task's own parts, by TASK.PART"
    schema["properties"]["parts"] = {"type": "object", "description": about}
    about = "those of `parts` that were stored with the run and not recomputed"
    names = {"type": "array", "items": {"type": "string"}, "description": about}
    schema["properties"]["stored_parts"] = names
    schema["required"] += ["parts", "stored_parts"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def count_programs(reader: RunReader) -> Programs | None:
    """How many programs were run, judged inside their own process, and not judged; None if the task
    runs no programs."""
    if not reader.info.identity.get("runs_code"):
        return None
    found = reader.verdict_kinds()
    return Programs(found.total(), found["inside"], found["none"])


def describe_resuming(run: RunFactsInResult, sequential: bool) -> str:
    """What to do so that an unfinished run continues, with the command."""
    workers = "" if run.workers is None else " --workers N"
    resume, limits = f"`parley resume {run.id}{workers}`", run.budget
    if run.workers is not None and run.workers.alive:
        return f"; {describe_workers(run.workers)}; stop it with `parley stop {run.id}`"
    if run.stop.reason == NOBODY:
        return f"; go on with `parley worker {run.id}` on any machine, or with {resume}"
    if run.state == "running":
        return f"; if this run is no longer being played, resume it with {resume}"
    if run.stop.status == WAITING:
        return f"; vote with `parley annotate {run.id}`, then resume with {resume}"
    if run.stop.status == "budget":
        flags = {
            "--budget-usd N": limits.usd is not None,
            "--max-calls N": limits.calls is not None,
            "--max-blocks N": sequential,
        }
        raised = " or ".join(flag for flag, is_set in flags.items() if is_set)
        return f"; resume with {resume} and a higher limit ({raised})"
    if run.state == "failed":
        return f"; fix the cause, then resume with {resume}"
    return f"; resume with {resume}"


def describe_violations(found: ViolationCount) -> str:
    """Violations of a model of one kind, with the number of attempts if it is larger."""
    attempts = f" ({found.attempts} attempts)" if found.attempts > found.count else ""
    return f"{found.alias} {found.kind} ×{found.count}{attempts}"


def describe_programs(found: Programs | None) -> list[str]:
    """Warnings about verdicts that a hostile program could have forged, and programs without a
    verdict."""
    if found is None:
        return []
    remarks = []
    if found.inside:
        were = "was" if found.inside == 1 else "were"
        remarks.append(
            f"{found.inside} of {plural(found.run, 'program')} {were} judged inside the program's "
            "own process, where a program can forge its verdict: they count apart"
        )
    if found.unjudged:
        remarks.append(
            f"{found.unjudged} of {plural(found.run, 'program')} could not be judged and has no "
            "score: a test needs an object of the program as plain data, and the problem has no "
            "reference that shows whether a right program passes"
            if found.unjudged == 1
            else f"{found.unjudged} of {plural(found.run, 'program')} could not be judged and have "
            "no score: tests need objects of the program as plain data, and the problems have no "
            "references that show whether a right program passes"
        )
    return remarks


def stored_rows(stored: StoredPart) -> list[list[dict[str, Any]]]:
    """Stored data as rows: a list of objects as it is, an object list by list."""
    data = stored_data(stored.data, stored)
    if isinstance(data, list):
        found = {"": data}
    else:
        fields = data.items() if isinstance(data, dict) else ()
        rest = {name: each for name, each in fields if not isinstance(each, list)}
        lists = {name: each for name, each in fields if isinstance(each, list)}
        found = {"": [rest] if rest else [], **lists}
    return [
        [({"list": name} if name else {}) | flatten(row) for row in rows if isinstance(row, dict)]
        for name, rows in found.items()
        if rows
    ]


def is_part_of_task(stored: StoredPart) -> bool:
    """Whether a stored result may come from a task: general parts are never stored."""
    return "." in stored.name


def describe_stored(stored: StoredPart) -> str:
    """What to know about a stored result."""
    task, _, name = stored.name.rpartition(".")
    return (
        f"part `{name}` was stored with the run by the task `{task}` (Parley "
        f"{stored.version}). These numbers were not recomputed, and no digest covers them, so "
        "trust them only as far as you trust whoever wrote the record"
    )


def stored_data(text: str, stored: StoredPart) -> Any:
    """Parse stored JSON."""
    try:
        return orjson.loads(text)
    except ValueError as wrong:
        raise ParleyError(f"the stored part `{stored.name}` is damaged: {wrong}") from None


def flatten(row: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """An object as one row; keys of nested objects are joined by `_`."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            found |= flatten(value, f"{before}{name}_")
        else:
            text = orjson.dumps(value).decode() if isinstance(value, list) else value
            found[f"{before}{name}"] = text
    return found


def stored_tables(stored: StoredPart) -> list[Table]:
    """The stored result of a part, as plain tables."""
    note, tables = describe_stored(stored), []
    for rows in stored_rows(stored):
        columns = dict.fromkeys(column for row in rows for column in row)
        header = [name for name in columns if any(row.get(name) is not None for row in rows)]
        header = header or list(columns)
        cells = [[format_stored(row.get(column)) for column in header] for row in rows]
        tables.append(Table(header, cells, note=note))
    return tables


def format_stored(value: Any) -> str:
    """A stored value for a table; fractions are rounded to three significant digits."""
    if value is None:
        return "–"
    if not isinstance(value, float) or value == 0:
        return str(value)
    if abs(value) < 0.0001:
        return f"{value:.3g}"
    return round_half_up(value, max(0, 2 - floor(log10(abs(value)))))


def stored_figures(stored: StoredPart) -> list[Figure]:
    """The stored figures of a part."""
    found: list[Figure] = []
    data = stored_data(stored.figures, stored)
    for each in data if isinstance(data, list) else [data]:
        kind = FIGURES.get(str(each.get("kind"))) if isinstance(each, dict) else None
        try:
            if kind is None:
                raise ValueError(f"unknown kind of figure: {each!r:.80}")
            found.append(decode(each, kind, "figure"))
        except ValueError as wrong:
            raise ParleyError(f"the stored part `{stored.name}` is damaged: {wrong}") from None
    return found


def import_frames(library: str) -> Any:
    """Import an optional library for data frames."""
    try:
        return import_module(library)
    except ImportError:
        raise UsageError(f"{library} is not installed: pip install 'parley-eval[frames]'") from None
