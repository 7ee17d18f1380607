"""Launchers on real clusters: Ray with a head and two nodes, Slurm with a controller and two nodes.
A stand-in for `parley worker` shows what reaches a worker."""

import json
import os
import signal
import sys

import pytest

from parley.errors import UsageError
from parley.runs.launchers import ray, slurm, worker_folder
from tests.runs.launched import (
    PASSWORD,
    SECRETS,
    command_lines,
    contains_secret,
    files_with_secrets,
    find_newest,
    read_workers,
    secrets_for,
    wait_until,
)
from tests.slurm_cluster import processes_of

# Slurm


@pytest.fixture
def on_slurm(slurm_nodes, stand_in, monkeypatch, tmp_path):
    monkeypatch.setattr(slurm, "PAUSE", 0.2)
    monkeypatch.setenv("PATH", slurm_nodes.environment["PATH"])
    monkeypatch.setenv("SLURM_CONF", slurm_nodes.environment["SLURM_CONF"])
    monkeypatch.setenv("PYTHONPATH", str(stand_in))
    monkeypatch.setenv("STAND_IN", str(stand_in))
    monkeypatch.setenv(worker_folder.VARIABLE, str(tmp_path / "folder of workers"))
    monkeypatch.chdir(tmp_path)
    return slurm_nodes


@pytest.mark.slow
def test_slurm_starts_workers_and_shows_no_secret(on_slurm, stand_in, monkeypatch, tmp_path):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)  # as the user of `parley run` has it
    monkeypatch.setenv("PARLEY_STORE", f"postgresql://me:{PASSWORD}@host/database")
    monkeypatch.setenv("PARLEY_SETTING", "kept")
    launcher = slurm.SlurmLauncher()
    words = ["--store", "postgresql://me@host/data base", "run 'a' $b", "--concurrency", "8"]
    launcher.start(4, words, SECRETS)
    try:
        workers = wait_until(lambda: len(found := read_workers(stand_in)) == 4 and found)
        for each in workers:
            assert each["words"] == ["worker", *words]
            assert each["told"] == {**SECRETS, "PARLEY_SETTING": "kept"}
            assert each["cwd"] == str(tmp_path)
        assert {each["node"] for each in workers} == {"n1", "n2"}
        os.kill(workers[0]["pid"], signal.SIGKILL)
        wait_until(lambda: len(read_workers(stand_in)) == 5)
        assert launcher.poll() == slurm.LauncherState(up=4, waiting=0)
        (file,) = files_with_secrets(tmp_path / "folder of workers")
        assert file.name == "environment"
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700
        assert files_with_secrets(on_slurm.folder) == []  # spool, state and logs
        assert not contains_secret(command_lines())
        shown = on_slurm.run("scontrol", "show", "job", "--details")
        assert "JobName=parley" in shown
        assert not contains_secret(shown)
        script = on_slurm.run("scontrol", "write", "batch_script", launcher._job, "-")
        assert "slurm_task" in script
        assert not contains_secret(script)
    finally:
        launcher.stop()
    assert wait_until(lambda: len(list(stand_in.glob("*.drained"))) == 4)
    assert list((tmp_path / "folder of workers").iterdir()) == []


@pytest.mark.slow
def test_slurm_starts_a_worker_again_after_its_node_failed(on_slurm, stand_in):
    launcher = slurm.SlurmLauncher()
    launcher.start(4, ["run"], SECRETS)
    try:
        wait_until(lambda: len(read_workers(stand_in)) == 4)
        on_slurm.kill_node("n2")
        state = wait_until(lambda: (state := launcher.poll()).waiting == 2 and state)
        assert state == slurm.LauncherState(up=2, waiting=2)
        on_slurm.start_node("n2")
        wait_until(lambda: len(read_workers(stand_in)) == 6)
        wait_until(lambda: launcher.poll() == slurm.LauncherState(up=4, waiting=0))
        (stand_in / "finish").touch()
        wait_until(lambda: launcher.poll() == slurm.LauncherState(up=0, waiting=0))
    finally:
        launcher.stop()


@pytest.mark.slow
def test_slurm_starts_a_task_again_that_was_killed_but_not_for_ever(on_slurm, stand_in):
    def kill_task():
        for pid in processes_of(f"SLURM_CONF={os.environ['SLURM_CONF']}", "SLURM_ARRAY_TASK_ID=1"):
            os.kill(pid, signal.SIGKILL)

    launcher = slurm.SlurmLauncher()
    launcher.start(2, ["run"], SECRETS)
    try:
        wait_until(lambda: len(read_workers(stand_in)) == 2)
        kill_task()
        wait_until(lambda: launcher.poll() and len(read_workers(stand_in)) == 3)
        wait_until(lambda: launcher.poll() == slurm.LauncherState(up=2, waiting=0))
        launcher._restarts = slurm.MOST_RESTARTS
        kill_task()
        state = wait_until(lambda: (state := launcher.poll()).failed and state)
        assert (state.up, state.waiting) == (1, 0)
        assert state.failed[0].startswith(f"task {launcher._job}_1 of Slurm was killed (state ")
    finally:
        launcher.stop()


@pytest.mark.slow
def test_slurm_says_why_workers_failed(on_slurm, stand_in, tmp_path):
    launcher = slurm.SlurmLauncher()
    launcher.start(2, ["fail"], SECRETS)
    state = wait_until(lambda: len((state := launcher.poll()).failed) == 2 and state)
    assert (state.up, state.waiting) == (0, 0)
    assert state.failed[1].splitlines()[0].endswith("_2 of Slurm ended with code 1")
    assert state.failed[1].splitlines()[-1] == "the key of openai is missing"
    launcher.stop()
    kept = {path.name for path in (tmp_path / "folder of workers").rglob("*") if path.is_file()}
    assert "worker-1.log" in kept
    assert "environment" not in kept


@pytest.mark.slow
def test_a_worker_goes_back_into_the_queue_before_the_time_limit(on_slurm, stand_in, monkeypatch):
    """The shortest limit is a minute, and Slurm may send the signal a minute early."""
    monkeypatch.setenv("SBATCH_TIMELIMIT", "2")
    monkeypatch.setenv("SBATCH_SIGNAL", "B:USR1@60")
    launcher = slurm.SlurmLauncher()
    launcher.start(1, ["run"], SECRETS)
    try:
        wait_until(lambda: list(stand_in.glob("*.drained")))
        wait_until(lambda: len(read_workers(stand_in)) == 2)
        (stand_in / "finish").touch()
        wait_until(lambda: launcher.poll() == slurm.LauncherState(up=0, waiting=0))
    finally:
        launcher.stop()


@pytest.mark.slow
def test_options_of_sbatch_are_passed_on(on_slurm, stand_in, monkeypatch, tmp_path):
    monkeypatch.setenv(slurm.OPTIONS, "--cpus-per-task=2 --comment 'two cores'")
    launcher = slurm.SlurmLauncher()
    launcher.start(1, ["run"], SECRETS)
    shown = on_slurm.run("scontrol", "show", "job")
    launcher.stop()
    assert "Comment=two cores" in shown
    assert "CPUs/Task=2" in shown
    monkeypatch.setenv("SBATCH_PARTITION", "none")
    with pytest.raises(UsageError, match=r"Slurm did not accept .*partition.*SBATCH_PARTITION"):
        launcher.start(1, ["run"], SECRETS)
    assert files_with_secrets(tmp_path / "folder of workers") == []


def test_slurm_is_refused_where_it_is_not_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"need the command sbatch.* on a login node"):
        slurm.SlurmLauncher()


# Ray

DRIVER = """
import json, os, sys, time
from parley.runs.launchers.ray import RayLauncher

words, secrets, workers = json.loads(os.environ.pop("START"))
launcher = RayLauncher()
launcher.start(workers, words, secrets)
while not os.path.exists("stop"):
    state = launcher.poll()
    line = json.dumps([state.up, state.waiting, state.failed])
    with open("state.new", "w") as file:
        file.write(line)
    os.rename("state.new", "state")
    time.sleep(0.2)
launcher.stop()
"""


class RayDriver:
    """A process in the cluster's namespace that holds a launcher."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder, self.pid = cluster, folder, 0

    def start(self, workers, words, secrets, **environment):
        start = json.dumps([words, secrets, workers])
        variables = {worker_folder.VARIABLE: str(self.folder / "workers"), **environment}
        self.pid = self.cluster.start(
            [sys.executable, "-c", DRIVER],
            self.folder,
            self.folder / "driver.log",
            START=start,
            **variables,
        )

    def poll(self):
        try:
            up, waiting, failed = json.loads((self.folder / "state").read_text())
        except FileNotFoundError:
            assert self.cluster.wait(self.pid, 0) is None, (self.folder / "driver.log").read_text()
            return None
        return ray.LauncherState(up, waiting, tuple(failed))

    def stop(self):
        (self.folder / "stop").touch()
        if self.pid:
            pid, self.pid = self.pid, 0
            assert self.cluster.wait(pid, 60) == 0, (self.folder / "driver.log").read_text()


@pytest.fixture
def on_ray(ray_nodes, tmp_path):
    driver = RayDriver(ray_nodes, tmp_path)
    yield driver
    driver.stop()


@pytest.mark.slow
def test_ray_starts_workers_and_shows_no_secret(on_ray, stand_in, tmp_path):
    words = ["--store", "postgresql://me@host/data base", "run 'a' $b", "--concurrency", "8"]
    store = f"postgresql://me:{PASSWORD}@host/database"
    on_ray.start(4, words, secrets_for(stand_in), PARLEY_STORE=store, PARLEY_SETTING="kept")
    workers = wait_until(lambda: len(found := read_workers(stand_in)) == 4 and found)
    for each in workers:
        assert each["words"] == ["worker", *words]
        assert each["told"] == {**SECRETS, "PARLEY_SETTING": "kept"}
        assert each["cwd"] == str(tmp_path)
    wait_until(lambda: on_ray.poll() == ray.LauncherState(up=4, waiting=0))
    (file,) = files_with_secrets(tmp_path / "workers")
    assert file.name == "environment"
    assert file.stat().st_mode & 0o777 == 0o600
    assert files_with_secrets(on_ray.cluster.folder) == []  # logs and files of the session
    assert not contains_secret(command_lines())
    program = (
        "from ray.util.state import *\n"
        "for list in (list_actors, list_tasks, list_workers, list_jobs, list_runtime_envs):\n"
        "    print(list.__name__, list(detail=True))\n"
    )
    records = on_ray.cluster.run(sys.executable, "-c", program)
    assert "ParleyWorker" in records
    assert not contains_secret(records)
    on_ray.stop()
    assert len(list(stand_in.glob("*.drained"))) == 4
    assert list((tmp_path / "workers").iterdir()) == []


@pytest.mark.slow
def test_ray_says_why_workers_failed(on_ray, stand_in):
    on_ray.start(2, ["fail"], secrets_for(stand_in))
    state = wait_until(lambda: (state := on_ray.poll()) and len(state.failed) == 2 and state)
    assert (state.up, state.waiting) == (0, 0)
    assert state.failed[1].splitlines() == [
        "worker 2 ended with code 1",
        "the key of openai is missing",
    ]


@pytest.mark.slow
def test_ray_waits_for_free_resources_and_says_so(on_ray, stand_in):
    on_ray.start(5, ["run"], secrets_for(stand_in))  # two nodes with two CPUs each
    wait_until(lambda: on_ray.poll() == ray.LauncherState(up=4, waiting=1))


@pytest.mark.slow
def test_ray_starts_workers_again_after_a_kill(on_ray, stand_in):
    """First of a worker, then of the process that Ray started, and of a node. A worker ends with
    its actor."""
    on_ray.start(2, ["run"], secrets_for(stand_in))
    workers = wait_until(lambda: len(found := read_workers(stand_in)) == 2 and found)
    on_ray.cluster.signal(workers[1]["pid"], signal.SIGKILL)
    wait_until(lambda: len(read_workers(stand_in)) == 3)
    killed = workers[0]["pid"]
    on_ray.cluster.signal(on_ray.cluster.parent_of(killed), signal.SIGKILL)
    wait_until(lambda: (stand_in / f"{killed}.drained").exists())
    wait_until(lambda: len(read_workers(stand_in)) == 4)
    wait_until(lambda: on_ray.poll() == ray.LauncherState(up=2, waiting=0))
    on_ray.cluster.kill_node_of(find_newest(stand_in))
    wait_until(lambda: len(read_workers(stand_in)) >= 5)
    wait_until(lambda: on_ray.poll() == ray.LauncherState(up=2, waiting=0))
    on_ray.cluster.add_node()


@pytest.mark.parametrize("text", ["2", "{", '{"num_cpu": 2}', '{"runtime_env": {}}'])
def test_options_of_ray_are_checked(monkeypatch, text):
    monkeypatch.setenv(ray.OPTIONS, text)
    with pytest.raises(UsageError, match=r"PARLEY_RAY_OPTIONS must be .*num_cpus, num_gpus"):
        ray.read_resources()


def test_options_of_ray_are_read(monkeypatch):
    assert ray.read_resources() == {"num_cpus": 1}
    monkeypatch.setenv(ray.OPTIONS, '{"num_gpus": 1, "resources": {"big": 1}}')
    assert ray.read_resources() == {"num_cpus": 1, "num_gpus": 1, "resources": {"big": 1}}
