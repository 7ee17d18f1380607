"""A Ray cluster for tests: a head and two nodes in a network namespace of their own, because Ray
listens on all interfaces. This file is also the program that runs inside the namespace."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from contextlib import contextmanager
from pathlib import Path

from tests.endpoint import Endpoint

INSTALL = "pip install 'parley-eval[ray]' and apt-get install bubblewrap"
ROOT = Path(__file__).parents[1]


def find_missing_parts() -> list[str]:
    missing = [] if importlib.util.find_spec("ray") else ["ray"]
    return missing if shutil.which("bwrap") else [*missing, "bwrap"]


class RayCluster:
    """Every method runs inside the namespace, where processes have other numbers than outside."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # a socket's path is short
        self._errors = (self.folder / "cluster.log").open("wb")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_TMPDIR": str(
                self.folder
            ),  # here, in ray/, Ray also notes which cluster is running
            # a node is dead after 3 s without an answer
            "RAY_health_check_period_ms": "1000",
            "RAY_health_check_failure_threshold": "3",
        }
        self._process = subprocess.Popen(
            [
                *("bwrap", "--dev-bind", "/", "/", "--proc", "/proc", "--unshare-net"),
                *("--unshare-pid", "--die-with-parent"),
                *(sys.executable, "-m", "tests.ray_cluster", str(self.folder)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            cwd=ROOT,
            text=True,
        )
        try:
            self.address = self._read()
        except BaseException:
            self.close()
            raise

    def _ask(self, name: str, *values):
        self._process.stdin.write(json.dumps([name, values]) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self):
        if not (line := self._process.stdout.readline()):
            raise AssertionError((self.folder / "cluster.log").read_text()[-4000:])
        answer = json.loads(line)
        assert "wrong" not in answer, answer["wrong"]
        return answer["value"]

    def start(self, command: list[str], cwd: Path, output: Path, **environment: str) -> int:
        """Start a process that can reach the cluster; its number inside the namespace."""
        return self._ask("start", command, str(cwd), str(output), environment)

    def wait(self, pid: int, timeout: float) -> int | None:
        """The exit code of a process; None if it is still running."""
        return self._ask("wait", pid, timeout)

    def run(self, *command: str) -> str:
        """Run a command to its end; what it printed."""
        return self._ask("run", command)

    def signal(self, pid: int, signum: int) -> None:
        self._ask("signal", pid, signum)

    def parent_of(self, pid: int) -> int:
        return self._ask("parent_of", pid)

    def kill_node_of(self, pid: int) -> None:
        """Kill everything on the node that a process runs on, at once, as a power failure does."""
        self._ask("kill_node_of", pid)

    def add_node(self) -> None:
        self._ask("add_node")

    @contextmanager
    def endpoint(self, latency: float, output: Path):
        """An endpoint in the namespace (tests/endpoint.py)."""
        pid = self.start([sys.executable, "-m", "tests.endpoint", str(latency)], ROOT, output)
        while not (port := output.read_text().strip()):
            assert self.wait(pid, 0.1) is None
        yield EndpointInside(self, int(port))
        self.signal(pid, signal.SIGKILL)
        self.wait(pid, 10)

    def close(self) -> None:
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()  # the processes in the namespace end with it
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class EndpointInside(Endpoint):
    """An endpoint that only processes in the namespace reach."""

    def __init__(self, cluster: RayCluster, port: int) -> None:
        super().__init__(port)
        self._cluster, self._port = cluster, port

    def arrived(self) -> int:
        program = f"from tests.endpoint import Endpoint; print(Endpoint({self._port}).arrived())"
        return int(self._cluster.run(sys.executable, "-c", program))


class InsideNamespace:
    """What the program does for the tests."""

    def __init__(self, folder: Path) -> None:
        from ray.cluster_utils import Cluster

        (own := folder / "ray").mkdir()
        head = {"num_cpus": 0, "dashboard_host": "127.0.0.1", "include_dashboard": True}
        self._cluster = Cluster(initialize_head=True, head_node_args={**head, "temp_dir": str(own)})
        for _ in range(2):
            self.add_node()
        self._children = {}
        self.address = self._cluster.address

    def start(self, command, cwd, output, environment):
        variables = {**os.environ, "RAY_ADDRESS": self.address, **environment}
        with open(output, "ab") as file:
            child = subprocess.Popen(command, cwd=cwd, env=variables, stdout=file, stderr=file)
        self._children[child.pid] = child
        return child.pid

    def wait(self, pid, timeout):
        try:
            return self._children[pid].wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def run(self, command):
        variables = {**os.environ, "RAY_ADDRESS": self.address}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def signal(self, pid, signum):
        os.kill(pid, signum)

    def parent_of(self, pid):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

    def kill_node_of(self, pid):
        for node in self._cluster.worker_nodes:
            raylet = node.all_processes["raylet"][0].process.pid
            if pid in find_descendants(raylet):
                for each in find_descendants(raylet):
                    os.kill(each, signal.SIGSTOP)
                for each in find_descendants(raylet):
                    os.kill(each, signal.SIGKILL)
                return self._cluster.remove_node(node, allow_graceful=False)
        raise AssertionError(f"{pid} runs on no node")

    def add_node(self):
        self._cluster.add_node(num_cpus=2)
        self._cluster.wait_for_nodes()

    def close(self):
        for child in self._children.values():
            child.kill()
        self._cluster.shutdown()


def find_descendants(pid: int) -> list[int]:
    """The processes below a process, with itself."""
    found = [pid]
    for each in found:
        for path in Path(f"/proc/{each}/task").glob("*/children"):
            found += map(int, path.read_text().split())
    return found


def serve(folder: Path) -> None:
    """Answer one line of JSON with another, until the tests close the pipe."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Ray prints is no answer

    def answer(value) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    inside = InsideNamespace(folder)
    answer({"value": inside.address})
    for line in sys.stdin:
        name, values = json.loads(line)
        try:
            answer({"value": getattr(inside, name)(*values)})
        except Exception:
            answer({"wrong": traceback.format_exc()})
    inside.close()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
