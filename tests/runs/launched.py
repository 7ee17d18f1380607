"""What tests of launchers share: a stand-in for `parley worker`, planted secrets, and where to look
for them."""

import json
import subprocess
import time
from pathlib import Path

import parley

PATIENCE = 120.0
PASSWORD = "planted-password-of-the-store"
KEY = "planted key 'of' $a \"model\"\nin two lines"
SECRETS = {
    "PARLEY_STORE": f"postgresql://me@host/data base?password={PASSWORD}",
    "PGPASSWORD": PASSWORD,
    "OPENAI_API_KEY": KEY,
}
# Leaves a file with its words and variables, and another one when it drains.
STAND_IN = """
import json, os, signal, sys, time
from pathlib import Path

folder = Path(os.environ["STAND_IN"])
names = ("PARLEY_STORE", "PGPASSWORD", "OPENAI_API_KEY", "PARLEY_SETTING")
told = {name: os.environ.get(name) for name in names}
node = os.environ.get("SLURMD_NODENAME", "")
about = {"words": sys.argv[1:], "told": told, "cwd": os.getcwd(), "node": node, "pid": os.getpid()}
number = str(os.getpid())
(folder / f"{number}.new").write_text(json.dumps(about))
(folder / f"{number}.new").rename(folder / f"{number}.up")

def drain(signum, _):
    (folder / f"{number}.drained").touch()
    sys.exit(0)

signal.signal(signal.SIGINT, drain)
signal.signal(signal.SIGTERM, drain)
if "fail" in sys.argv:
    sys.exit("the key of openai is missing")
while not (folder / "finish").exists():
    time.sleep(0.05)
"""


def secrets_for(stand_in):
    return {**SECRETS, "PYTHONPATH": str(stand_in), "STAND_IN": str(stand_in)}


def read_workers(stand_in, pattern="*.up"):
    return [json.loads(path.read_text()) for path in sorted(stand_in.glob(pattern))]


def find_newest(stand_in):
    newest = max(stand_in.glob("*.up"), key=lambda path: path.stat().st_mtime_ns)
    return json.loads(newest.read_text())["pid"]


def wait_until(condition, patience=PATIENCE):
    deadline = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return found


def contains_secret(text):
    """Whether a text has a planted secret, or a part of one."""
    return any(part in text for part in (PASSWORD, "planted key", "in two lines"))


def files_with_secrets(*folders):
    files = (path for folder in folders for path in Path(folder).rglob("*") if path.is_file())
    return [path for path in files if contains_secret(path.read_bytes().decode(errors="replace"))]


def command_lines():
    """What `ps` shows of all processes on this machine."""
    return subprocess.run(["ps", "-eo", "args", "-ww"], capture_output=True, text=True).stdout


def write_stand_in(folder):
    """Fill a folder with a module `parley` whose command is the stand-in."""
    (folder / "parley").mkdir(parents=True)
    real = Path(parley.__file__).parent
    (folder / "parley" / "__init__.py").write_text(f"__path__.append({str(real)!r})")
    (folder / "parley" / "__main__.py").write_text(STAND_IN)
