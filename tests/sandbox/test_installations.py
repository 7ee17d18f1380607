"""No installed package is visible to a program or a shell, wherever Parley and other packages are
installed: an installation of Parley contains tests and reference programs."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import parley
from parley.sandbox.shell import Shell
from tests.isolation import isolated

pytestmark = [isolated]
PACKAGE = Path(parley.__file__).parent
PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"
UID = 61_100
# Looks for installed packages and for the bundled problems everywhere.
LOOKS = """
import os
def answer(x):
    found = []
    for folder, folders, files in os.walk("/"):
        if folder.rpartition("/")[2] in ("site-packages", "dist-packages"):
            found += [f"{folder}/{name}" for name in folders + files]
            folders.clear()
        found += [f"{folder}/{name}" for name in files if name in ("problems.json", "planted.json")]
    return found
"""
# Runs in an interpreter of its own: where its Parley is, and what a program of it finds.
DRIVER = f"""
import asyncio, json, parley
from parley.sandbox.executor import Sandbox
sandbox = Sandbox(jobs=1)
tests = ["found = answer(1)\\nassert not found, found"]
program = {{"code": {LOOKS!r}, "tests": tests, "names": ["answer"]}}
found = asyncio.run(sandbox.execute(program))
sandbox.close()
print(json.dumps([parley.__file__, found["faults"]]))
"""
# with and without the rights of root
WHO = [
    pytest.param(None, id="self"),
    pytest.param(
        UID, id="user", marks=pytest.mark.skipif(os.getuid() != 0, reason="needs another user")
    ),
]


def copy_parley(folder):
    """Lay Parley and what an installer adds into a folder of packages."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, folder / "parley", ignore=ignored, dirs_exist_ok=True)
    info = folder / f"parley-{parley.__version__}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: parley\nVersion: {parley.__version__}\n")


def make_place(folder, name="parley-test"):
    """A new folder that every user may read."""
    place = Path(folder, f"{name}-{os.urandom(6).hex()}")
    try:
        place.mkdir()
    except OSError:
        pytest.skip(f"{folder} cannot be written")
    place.chmod(0o755)
    return place


@pytest.fixture
def below_usr():
    place = make_place("/usr/local/lib")
    yield place
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def interpreter():
    """A Python of its own, which every user may start, without packages."""
    place, base = make_place("/var/tmp", "parley-test-python"), Path(sys.base_prefix)
    (place / "bin").mkdir()
    shutil.copy(base / "bin" / PYTHON, place / "bin")
    ignored = shutil.ignore_patterns("*-packages", "__pycache__", "test", "idlelib", "*.a")
    shutil.copytree(base / "lib" / PYTHON, place / "lib" / PYTHON, ignore=ignored)
    found = place / "bin" / PYTHON
    works = subprocess.run([found, "-c", ""], env={}, capture_output=True)
    if works.returncode:
        shutil.rmtree(place)
        pytest.skip("this Python does not work when it is copied")
    yield found
    shutil.rmtree(place)


def output_of(interpreter, code, uid, **environment):
    """Run code in an interpreter as this user; what it prints, which is JSON."""
    start = [str(interpreter), "-c", code]
    if uid is not None:
        start = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *start]
    words = {"PATH": os.environ["PATH"], "HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        start, env={**words, **environment}, cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def what_a_program_finds(interpreter, expected, uid=None, **environment):
    """Run a program with the Parley that this interpreter finds, which must be the expected one."""
    where, faults = output_of(interpreter, DRIVER, uid, **environment)
    assert where.startswith(f"{expected}/"), where
    return faults


@pytest.fixture
def own_packages(interpreter):
    """The folder where an interpreter looks for packages of its own, by user."""
    made = set()

    def find(uid):
        listed = "import json, site; print(json.dumps(site.getsitepackages()))"
        packages = Path(output_of(interpreter, listed, uid)[-1])
        packages.mkdir(parents=True, exist_ok=True)
        made.add(packages)
        return packages

    yield find
    for each in made:
        shutil.rmtree(each)


@pytest.mark.parametrize("uid", WHO)
def test_in_a_system_python(interpreter, own_packages, uid):
    copy_parley(packages := own_packages(uid))
    assert what_a_program_finds(interpreter, packages, uid) == [""]


@pytest.mark.parametrize("uid", WHO)
def test_in_a_virtual_environment(interpreter, below_usr, uid):
    make = [interpreter, "-m", "venv", "--without-pip", below_usr]
    subprocess.run(make, check=True, capture_output=True)
    listed = "import json, sysconfig; print(json.dumps(sysconfig.get_path('purelib')))"
    packages = Path(output_of(below_usr / "bin" / "python", listed, uid))
    copy_parley(packages)
    assert what_a_program_finds(below_usr / "bin" / "python", packages, uid) == [""]


@pytest.mark.parametrize("uid", WHO)
def test_in_the_packages_of_a_user(interpreter, below_usr, uid):
    packages = below_usr / "lib" / PYTHON / "site-packages"
    copy_parley(packages)
    base = {"PYTHONUSERBASE": str(below_usr)}
    assert what_a_program_finds(interpreter, packages, uid, **base) == [""]


@pytest.mark.parametrize("uid", WHO)
def test_in_a_folder_of_its_own(interpreter, below_usr, uid):
    copy_parley(below_usr)
    path = {"PYTHONPATH": str(below_usr)}
    assert what_a_program_finds(interpreter, below_usr, uid, **path) == [""]


@pytest.mark.parametrize("uid", WHO)
def test_below_a_folder_that_cannot_be_listed(interpreter, below_usr, uid):
    packages = below_usr / "lib" / PYTHON / "site-packages"
    copy_parley(packages)
    below_usr.chmod(0o711)
    base = {"PYTHONUSERBASE": str(below_usr)}
    assert what_a_program_finds(interpreter, packages, uid, **base) == [""]


@pytest.mark.parametrize("uid", WHO)
def test_as_an_editable_installation(interpreter, below_usr, own_packages, uid):
    copy_parley(below_usr / "src")
    (below_usr / "pyproject.toml").touch()
    (below_usr / "tests").mkdir()
    (below_usr / "tests" / "planted.json").touch()  # recorded runs hold problems
    (own_packages(uid) / "_parley.pth").write_text(f"{below_usr}/src\n")
    assert what_a_program_finds(interpreter, below_usr, uid) == [""]


@pytest.fixture
def packages_of_debian():
    packages = Path("/usr/lib/python3/dist-packages")
    if not os.access(packages, os.W_OK):
        pytest.skip(f"{packages} cannot be written")
    place = make_place(packages, "parley_test")
    (place / "planted.json").touch()
    yield packages
    shutil.rmtree(place)


@pytest.mark.parametrize("uid", WHO)
def test_beside_packages_of_debian(interpreter, below_usr, packages_of_debian, uid):
    copy_parley(below_usr)
    path = {"PYTHONPATH": str(below_usr)}
    assert what_a_program_finds(interpreter, below_usr, uid, **path) == [""]


def test_a_shell_and_its_checks_see_no_packages(packages_of_debian):
    looks = "find / -name planted.json -o -path '*-packages/*' 2>/dev/null | head"

    async def look():
        async with Shell() as shell:
            found = await shell.run(looks, timeout=60)
            prepared = await shell.run("python3 -c 'import json; print(json.dumps(3))'", timeout=60)
            checked = await shell.check(looks, timeout=60)
            return found["output"], prepared["output"], checked["output"]

    assert asyncio.run(look()) == ("", "3\n", "")
