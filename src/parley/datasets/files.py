"""Rows of files: JSON lines, a JSON list, CSV, parquet or documents in XML, packed by gzip or not,
one file or a folder."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from parley.datasets.os_folders import find_os_files, is_os_entry, name_os_entry
from parley.datasets.xml_segments import aligned_segments, is_translation_of_another
from parley.errors import UsageError

ENDINGS = (".jsonl", ".json", ".csv", ".parquet", ".xml")
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
LETTERED = ["question", "A", "B", "C", "D", "answer"]  # the columns of a table that has no header


class LocatedRow(NamedTuple):
    """A row, and where it stands: what an error about it begins with."""

    where: str
    number: int
    row: Any
    file: str = ""  # the name of its file, without endings
    id: str = ""  # what it is called where it has no id of its own; empty: its number
    columns: tuple[str, ...] = ()  # of the file, where the row has them under other names
    path: Path | None = None  # of its file

    @property
    def own_columns(self) -> str:
        """The columns as the file has them, in words."""
        return ", ".join(map(str, self.columns or self.row)) or "nothing"


def is_dataset_path(reference: str) -> bool:
    """Whether a dataset is named by a place on this machine, by the look of it."""
    return "/" in reference or reference.startswith("~") or reference.endswith((*ENDINGS, ".gz"))


def read_rows(path: Path) -> Iterator[LocatedRow]:
    """The rows of a file, or of all files in a folder in the order of their names.

    Rows of a folder that have no id are called by their file and their number in it.
    """
    if not path.is_dir():
        yield from read_file_rows(path)
        return
    if files := find_os_files(path):
        for file in files:
            for row in read_file_rows(file):
                yield row._replace(id=name_os_entry(file, row.number))
        return
    files = sorted(
        each
        for each in path.iterdir()
        if file_ending(each) in ENDINGS and not is_translation_of_another(each)
    )
    if not files:
        raise UsageError(
            f"dataset {path}: the folder holds no {', '.join(ENDINGS)} file, packed by gzip or not"
        )
    for file in files:
        for row in read_file_rows(file):
            yield row._replace(id=f"{row.file}/{row.number}")


def read_file_rows(file: Path) -> Iterator[LocatedRow]:
    """The rows of one file."""
    if file_ending(file) not in ENDINGS:
        raise UsageError(
            f"dataset {file}: wanted a {', '.join(ENDINGS)} file, packed by gzip (.gz) or not, "
            f"or a folder of them"
        )
    match file_ending(file):
        case ".xml":
            rows = aligned_segments(file, read_text)
        case ".parquet":
            rows = read_parquet(file)
        case _:
            rows = parse_rows(read_text(file), file)
    for number, row in enumerate(rows, 1):
        yield LocatedRow(f"{file}, row {number}", number, row, file_stem(file), path=file)


def read_text(file: Path) -> str:
    """The words of a file, unpacked."""
    try:
        content = file.read_bytes()
        return (gzip.decompress(content) if file.suffix == ".gz" else content).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as wrong:
        raise UsageError(f"dataset {file} cannot be read: {wrong}") from None


def file_ending(file: Path) -> str:
    return file.with_suffix("").suffix if file.suffix == ".gz" else file.suffix


def file_stem(file: Path) -> str:
    return file.name.removesuffix(".gz").removesuffix(file_ending(file))


def parse_rows(text: str, file: Path) -> Iterator[Any]:
    """What a file holds, by its ending."""
    if file_ending(file) == ".csv":
        yield from parse_csv(text, file)
    elif file_ending(file) == ".json":
        found = parse_json(text, str(file))
        if is_os_entry(found):
            found = [found]
        if not isinstance(found, list):
            raise UsageError(
                f"dataset {file}: wanted a list of items, found {type(found).__name__}"
            )
        yield from found
    else:
        # other ends of lines may stand inside a text
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield parse_json(line, f"{file}, line {number}")


def parse_csv(text: str, file: Path) -> Iterator[dict[str, str]]:
    """The rows of a table with a header, each of its length; tables of questions as MMLU publishes
    them have none."""
    number, mark = 0, find_separator(text, file)
    split = SEPARATORS[mark]
    try:
        table = csv.DictReader(io.StringIO(text, newline=""), strict=True, delimiter=mark)
        if has_no_header(table.fieldnames or ()):
            table = csv.DictReader(
                io.StringIO(text, newline=""), LETTERED, strict=True, delimiter=mark
            )
        for number, row in enumerate(table, 1):
            if None in row or None in row.values():
                raise UsageError(
                    f"dataset {file}, row {number}: not as many fields as the header has "
                    f"({', '.join(filter(None, row))}), read as separated by {split}; "
                    f"put quotes around a field that holds {split}, or save the file with others"
                )
            yield row
    except csv.Error as wrong:
        raise UsageError(
            f"dataset {file}, row {number + 1}: no CSV, read as separated by {split}: {wrong}"
        ) from None


def find_separator(text: str, file: Path) -> str:
    """What stands between the fields of a table: a comma; in a file whose header has none, a
    semicolon or a tab."""
    found = [mark for mark in SEPARATORS if len(split_header(text, mark)) > 1]
    if len(found) > 1 and "," not in found:
        names = " or ".join(SEPARATORS[mark] for mark in found)
        raise UsageError(
            f"dataset {file}: the header may be separated by {names}; save the file with commas"
        )
    return found[0] if found else ","


def split_header(text: str, mark: str) -> list[str]:
    """The fields of a table's first row by a separator; none where it cannot be read by it."""
    try:
        return next(csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=mark), [])
    except csv.Error:
        return []


def describe_separators(path: Path) -> list[str]:
    """Which CSV files are separated by something else than commas, in words."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    tables = [each for each in files if file_ending(each) == ".csv"]
    found = {each: find_separator(read_text(each), each) for each in tables}
    return [
        f"dataset {file}: read as separated by {SEPARATORS[mark]}"
        for file, mark in found.items()
        if mark != ","
    ]


def read_parquet(file: Path) -> Iterator[dict[str, Any]]:
    """The rows of a parquet file, read by pyarrow, which comes with the datasets library."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise UsageError(
            f'dataset {file}: parquet files need pyarrow: pip install "parley-eval[datasets]"'
        ) from None
    try:
        with ParquetFile(file) as found:
            for batch in found.iter_batches():
                yield from batch.to_pylist()
    except (OSError, ArrowException) as wrong:
        raise UsageError(
            f"dataset {file} cannot be read: {str(wrong).partition(chr(10))[0]}"
        ) from None


def has_no_header(first: Sequence[str]) -> bool:
    """Whether the first row of a table is a question with four choices and the letter of the right
    one, and no header."""
    # as headers are
    named = "question" in map(str.lower, first) or list(first[1:-1]) == LETTERED[1:-1]
    return len(first) == len(LETTERED) and len(first[-1].strip()) == 1 and not named


def parse_json(text: str, where: str) -> Any:
    """JSON, or an error that says where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise UsageError(f"{where}: not JSON: {wrong}") from None
