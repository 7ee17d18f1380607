"""Clusters for tests of workers, and a stand-in for `parley worker`."""

import os

import pytest

from tests import ray_cluster, slurm_cluster
from tests.runs.launched import write_stand_in

# set by `make test-all`, which installs Ray and Slurm: nothing is skipped then
HEAVY = bool(os.environ.get("PARLEY_HEAVY"))


@pytest.fixture
def stand_in(tmp_path):
    """A folder with a module `parley` that replaces the worker, and what it leaves behind."""
    folder = tmp_path / "stand_in"
    write_stand_in(folder)
    return folder


@pytest.fixture(scope="session")
def slurm_nodes():
    if missing := slurm_cluster.find_missing_programs():
        problem = f"missing: {', '.join(missing)}; install: {slurm_cluster.INSTALL}"
        pytest.fail(problem) if HEAVY else pytest.skip(problem)
    cluster = slurm_cluster.SlurmCluster()
    yield cluster
    cluster.close()


@pytest.fixture(scope="session")
def ray_nodes():
    if missing := ray_cluster.find_missing_parts():
        problem = f"missing: {', '.join(missing)}; install: {ray_cluster.INSTALL}"
        pytest.fail(problem) if HEAVY else pytest.skip(problem)
    cluster = ray_cluster.RayCluster()
    yield cluster
    cluster.close()
