"""Whole runs on real clusters, while tasks, processes and nodes are killed: the record is that of
one process, and only calls that were in flight are made again."""

import json
import os
import signal
import subprocess
import sys

import pytest

from parley.audit.audit import audit_run
from parley.runs.launchers import worker_folder
from parley.store import open_store, read_run
from tests.endpoint import endpoint
from tests.runs.launched import wait_until
from tests.runs.shared import play_alone, prepare, record_of
from tests.slurm_cluster import processes_of

pytestmark = pytest.mark.slow
MODELS = dict.fromkeys("abcd", "openai-compatible/mock")
REPEATS, SEED, CONCURRENCY = 150, 11, 4
CALLS = REPEATS * 5 * len(MODELS)
IN_FLIGHT = CONCURRENCY * len(MODELS)  # of one worker
LATENCY = 0.5


def command(url, launcher):
    return [
        *(sys.executable, "-m", "parley", "run", "public_goods", "--json", "--store", url),
        *(word for alias, model in MODELS.items() for word in ("-m", f"{alias}={model}")),
        *("--repeats", str(REPEATS), "--seed", str(SEED), "--concurrency", str(CONCURRENCY)),
        *("--workers", f"{launcher}:4"),
    ]


def check_record(url, folder, arrived):
    """Compare a run with the same run in one process. A worker that was killed just after it was
    started again has not joined, or has no calls yet."""
    ref = open_store(url).find("last")
    with read_run(ref) as reader:
        assert reader.calls.count() == CALLS
        states = [row.state for row in reader.snapshot.workers()]
        assert 2 <= states.count("dead") <= 3
        assert len(states) > 4  # some were started again
        assert sum(row.ended for row in reader.snapshot.workers()) == REPEATS
    assert arrived - CALLS <= states.count("dead") * IN_FLIGHT
    assert audit_run(ref).breaches == []
    with endpoint(0) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_COMPATIBLE_BASE_URL", f"{server.url}/v1")
        alone = play_alone(prepare(models=MODELS, repeats=REPEATS, seed=SEED), folder / "alone")
    assert record_of(ref) == record_of(alone)


def test_a_run_on_slurm_survives_a_killed_task_and_a_killed_node(
    slurm_nodes, postgres_server, tmp_path
):
    url, own = postgres_server.new_database(), slurm_nodes.environment
    with endpoint(LATENCY) as server:
        environment = {
            **own,
            "OPENAI_COMPATIBLE_BASE_URL": f"{server.url}/v1",
            worker_folder.VARIABLE: str(tmp_path / "workers"),
        }
        with subprocess.Popen(
            command(url, "slurm"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment,
        ) as process:
            try:
                conf = f"SLURM_CONF={own['SLURM_CONF']}"
                wait_until(lambda: server.arrived() > 200)
                for pid in processes_of(conf, "SLURM_ARRAY_TASK_ID=1"):
                    os.kill(pid, signal.SIGKILL)
                wait_until(lambda: server.arrived() > 600)
                slurm_nodes.kill_node("n2")
                wait_until(lambda: server.arrived() > 1000)
                slurm_nodes.start_node("n2")
                out, err = process.communicate(timeout=300)
            finally:
                process.kill()
        assert process.returncode == 0, err
        assert json.loads(out)["run"]["matches"]["done"] == REPEATS
        assert list((tmp_path / "workers").iterdir()) == []
        check_record(url, tmp_path, server.arrived())


def workers_in(cluster):
    """The numbers of the workers in the cluster's namespace."""
    lines = cluster.run("ps", "-eo", "pid,args", "-ww").splitlines()
    return [int(line.split()[0]) for line in lines if "-m parley worker --store" in line]


def test_a_run_on_ray_survives_a_killed_process_and_a_killed_node(
    ray_nodes, postgres_server, tmp_path
):
    url, output = postgres_server.new_database(), tmp_path / "output"
    with ray_nodes.endpoint(LATENCY, tmp_path / "endpoint.log") as server:
        variables = {
            "OPENAI_COMPATIBLE_BASE_URL": f"{server.url}/v1",
            worker_folder.VARIABLE: str(tmp_path / "workers"),
        }
        pid = ray_nodes.start(command(url, "ray"), tmp_path, output, **variables)
        wait_until(lambda: server.arrived() > 200)
        ray_nodes.signal(workers_in(ray_nodes)[0], signal.SIGKILL)
        wait_until(lambda: server.arrived() > 600)
        ray_nodes.kill_node_of(workers_in(ray_nodes)[-1])
        wait_until(lambda: server.arrived() > 1000)
        ray_nodes.add_node()
        assert wait_until(lambda: ray_nodes.wait(pid, 5) is not None, 300)
        assert ray_nodes.wait(pid, 0) == 0, output.read_text()
        assert '"done": 150' in output.read_text()
        assert list((tmp_path / "workers").iterdir()) == []
        check_record(url, tmp_path, server.arrived())
