"""Read rows from files: JSON Lines, a JSON list, CSV, Parquet or XML documents, optionally gzipped,
from one file or a folder."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from parley.datasets.os_folders import find_os_files, is_os_entry, name_os_entry
from parley.datasets.xml_segments import aligned_segments, is_translation_of_another
from parley.errors import UsageError, describe_type

ENDINGS = (".jsonl", ".json", ".csv", ".parquet", ".xml")
COMPRESSED = (".gz", ".parquet")
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
MOST_UNPACKED = 100_000_000  # bytes of all compressed files of a dataset
MOST_ROWS = 1_000_000  # of all compressed files of a dataset: each takes more memory than its text
LETTERED = ["question", "A", "B", "C", "D", "answer"]  # the columns of a table without a header

PathCheck = Callable[[Path], None]  # raises UsageError if a dataset must not lead to this path


def allow_every_path(path: Path) -> None:
    """The check for a dataset that the user names: all its files are allowed."""


class LocatedRow(NamedTuple):
    """A row and its place, with which an error about it begins."""

    where: str
    number: int
    row: Any
    file: str = ""  # the name of its file, without endings
    id: str = ""  # the default for a row without an id; empty: its number
    columns: tuple[str, ...] = ()  # the columns of the file, if the row's were renamed
    path: Path | None = None  # the path of its file
    check_path: PathCheck = allow_every_path  # for each other file that the row names

    @property
    def own_columns(self) -> str:
        """The columns of the file, as text."""
        return ", ".join(map(str, self.columns or self.row)) or "nothing"


def is_dataset_path(reference: str) -> bool:
    """Whether a reference looks like a path."""
    return "/" in reference or reference.startswith("~") or reference.endswith((*ENDINGS, ".gz"))


class FileReader:
    """Reads the files of one dataset. Each path is checked before it is opened, and compressed
    files may unpack only to a limited size, because a small file could otherwise fill the
    memory."""

    def __init__(self, check_path: PathCheck = allow_every_path) -> None:
        self.check_path, self._unpacked, self._rows = check_path, 0, 0

    def read_text(self, file: Path) -> str:
        """The text of a file, decompressed."""
        with self._open(file) as stream:
            content = stream.read(self._bytes_to_read(file))
            self.count_unpacked(file, len(content))
            return content.decode("utf-8-sig")

    def read_lines(self, file: Path) -> Iterator[str]:
        """The lines of a file, decompressed. Other line separators may occur inside a text."""
        with self._open(file) as stream:
            encoding = "utf-8-sig"
            while line := stream.readline(self._bytes_to_read(file)):
                self.count_unpacked(file, len(line))
                yield line.decode(encoding)
                encoding = "utf-8"

    @contextmanager
    def _open(self, file: Path) -> Iterator[IO[bytes]]:
        self.check_path(file)
        try:
            with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
                yield cast(IO[bytes], stream)
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as wrong:
            raise UsageError(f"dataset {file} cannot be read: {wrong}") from None

    def _bytes_to_read(self, file: Path) -> int:
        """How many bytes to read at a time: one more than allowed; -1 stands for no limit."""
        return MOST_UNPACKED - self._unpacked + 1 if file.suffix == ".gz" else -1

    def count_unpacked(self, file: Path, size: int) -> None:
        """Refuse a dataset whose compressed files unpack to too much."""
        if file.suffix in COMPRESSED:
            self._unpacked += size
            if self._unpacked > MOST_UNPACKED:
                raise too_large(file, f"unpack to at most {MOST_UNPACKED // 10**6} MB")

    def count_row(self, file: Path) -> None:
        """Refuse a dataset whose compressed files have too many rows."""
        if file.suffix in COMPRESSED:
            self._rows += 1
            if self._rows > MOST_ROWS:
                raise too_large(file, f"have at most {MOST_ROWS:,} rows")


def too_large(file: Path, limit: str) -> UsageError:
    return UsageError(
        f"dataset {file}: the compressed files of a dataset may {limit}, and this one needs more. "
        "If you trust it, unpack it, or convert it to .jsonl, and name the new file"
    )


def read_rows(path: Path, check_path: PathCheck = allow_every_path) -> Iterator[LocatedRow]:
    """The rows of a file, or of all files in a folder in the order of their names.

    The id of a row without one is, in a folder, its file and its number in it. `check_path` sees
    every file before it is read.
    """
    reader = FileReader(check_path)
    if not path.is_dir():
        yield from read_file_rows(path, reader)
        return
    if files := find_os_files(path):
        for file in files:
            for row in read_file_rows(file, reader):
                yield row._replace(id=name_os_entry(file, row.number))
        return
    files = sorted(
        each
        for each in path.iterdir()
        if file_ending(each) in ENDINGS and not is_translation_of_another(each)
    )
    if not files:
        raise UsageError(
            f"dataset {path}: the folder has no file that ends in {', '.join(ENDINGS)} "
            "(or one of these with .gz)"
        )
    for file in files:
        for row in read_file_rows(file, reader):
            yield row._replace(id=f"{row.file}/{row.number}")


def read_file_rows(file: Path, reader: FileReader | None = None) -> Iterator[LocatedRow]:
    """The rows of one file."""
    if file_ending(file) not in ENDINGS:
        raise UsageError(
            f"dataset {file}: expected a file that ends in {', '.join(ENDINGS)} (or one of these "
            "with .gz), or a folder of such files"
        )
    reader = reader or FileReader()
    match file_ending(file):
        case ".xml":
            rows = aligned_segments(file, reader.read_text)
        case ".parquet":
            rows = read_parquet(file, reader)
        case _:
            rows = parse_rows(file, reader)
    for number, row in enumerate(rows, 1):
        reader.count_row(file)
        where = f"{file}, row {number}"
        yield LocatedRow(
            where, number, row, file_stem(file), path=file, check_path=reader.check_path
        )


def file_ending(file: Path) -> str:
    return file.with_suffix("").suffix if file.suffix == ".gz" else file.suffix


def file_stem(file: Path) -> str:
    return file.name.removesuffix(".gz").removesuffix(file_ending(file))


def parse_rows(file: Path, reader: FileReader) -> Iterator[Any]:
    """The rows of a text file, parsed by its ending."""
    if file_ending(file) == ".csv":
        yield from parse_csv(reader.read_text(file), file)
    elif file_ending(file) == ".json":
        found = parse_json(reader.read_text(file), str(file))
        if is_os_entry(found):
            found = [found]
        if not isinstance(found, list):
            raise UsageError(
                f"dataset {file}: expected a list of items, found {describe_type(found)}"
            )
        yield from found
    else:
        for number, line in enumerate(reader.read_lines(file), 1):
            if line.strip():
                yield parse_json(line, f"{file}, line {number}")


def parse_csv(text: str, file: Path) -> Iterator[dict[str, str]]:
    """The rows of a table. Every row must be as long as the header. MMLU's tables of questions have
    no header."""
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
                    f"dataset {file}, row {number}: this row does not have the same number of "
                    f"fields as the header ({', '.join(filter(None, row))}). Parley read the "
                    f"file as separated by {split}: put quotes around fields that contain "
                    f"{split}, or use another separator"
                )
            yield row
    except csv.Error as wrong:
        raise UsageError(
            f"dataset {file}, row {number + 1} is not valid CSV (Parley read the file as "
            f"separated by {split}): {wrong}"
        ) from None


def find_separator(text: str, file: Path) -> str:
    """The separator of a table: a comma, or a semicolon or tab if the header has no comma."""
    found = [mark for mark in SEPARATORS if len(split_header(text, mark)) > 1]
    if len(found) > 1 and "," not in found:
        names = " or ".join(SEPARATORS[mark] for mark in found)
        raise UsageError(
            f"dataset {file}: Parley cannot tell whether the header is separated by {names}: "
            "save the file with commas"
        )
    return found[0] if found else ","


def split_header(text: str, mark: str) -> list[str]:
    """The fields of a table's first row by a separator; empty if it cannot be read with it."""
    try:
        return next(csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=mark), [])
    except csv.Error:
        return []


def describe_separators(path: Path) -> list[str]:
    """Notes on CSV files that are not separated by commas."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    tables = [each for each in files if file_ending(each) == ".csv"]
    found = {each: find_separator(FileReader().read_text(each), each) for each in tables}
    return [
        f"dataset {file}: Parley read this file as separated by {SEPARATORS[mark]}"
        for file, mark in found.items()
        if mark != ","
    ]


def read_parquet(file: Path, reader: FileReader) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file, read with pyarrow, which the datasets library installs."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise UsageError(
            f"dataset {file}: Parquet files need the package pyarrow: pip install "
            '"parley-eval[datasets]"'
        ) from None
    reader.check_path(file)
    try:
        with ParquetFile(file) as found:
            groups = range(found.num_row_groups)
            packed = sum(found.metadata.row_group(each).total_byte_size for each in groups)
            if packed > MOST_UNPACKED:
                reader.count_unpacked(file, packed)
            # few rows at a time: a value may be stored once and stand in all of them
            for batch in found.iter_batches(batch_size=100):
                reader.count_unpacked(file, batch.nbytes)
                yield from batch.to_pylist()
    except (OSError, ArrowException) as wrong:
        raise UsageError(
            f"dataset {file} cannot be read: {str(wrong).partition(chr(10))[0]}"
        ) from None


def has_no_header(first: Sequence[str]) -> bool:
    """Whether the first row of a table is already a question, with four choices and the letter of
    the right one."""
    named = "question" in map(str.lower, first) or list(first[1:-1]) == LETTERED[1:-1]
    return len(first) == len(LETTERED) and len(first[-1].strip()) == 1 and not named


def parse_json(text: str, where: str) -> Any:
    """Parse JSON; an error names the place."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise UsageError(f"{where}: not valid JSON: {wrong}") from None
