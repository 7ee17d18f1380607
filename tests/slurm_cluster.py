"""A Slurm cluster for tests: a controller and two nodes on this machine, on loopback only."""

import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol")
INSTALL = "apt-get install slurmctld slurmd slurm-client munge"
PATIENCE = 60.0  # seconds
NODES = ("n1", "n2")
# `cred_expire`: seconds until a job that was put back into the queue may start again
CONF = """\
ClusterName=parley
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=5
SlurmctldPort={port}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
KillWait=10
InactiveLimit=0
MinJobAge=300
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,batch_sched_delay=1,bf_interval=2
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdSpoolDir={folder}/spool-%n
SlurmctldLogFile={folder}/controller.log
SlurmdLogFile={folder}/slurmd-%n.log
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={n1} CPUs=2 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={n2} CPUs=2 State=UNKNOWN
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""


def find_missing_programs() -> list[str]:
    return [name for name in PROGRAMS if shutil.which(name, path=search_path()) is None]


def search_path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"  # daemons are not on every user's path


class SlurmCluster:
    """`start` it once; a node may be killed and started again."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="parley-slurm-", dir="/tmp"))
        self._daemons = {}
        self._own = f"SLURM_CONF={self.folder / 'slurm.conf'}"
        ports = find_free_ports(3)
        conf = CONF.format(
            host=socket.gethostname().partition(".")[0],
            user=getpass.getuser(),
            folder=self.folder,
            **dict(zip(("port", *NODES), ports, strict=True)),
        )
        (self.folder / "slurm.conf").write_text(conf)
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        self.environment = {
            **os.environ,
            "PATH": search_path(),
            "SLURM_CONF": str(self.folder / "slurm.conf"),
        }
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        files = {"socket": "munge.sock", "pid-file": "munge.pid", "log-file": "munge.log"}
        files |= {"key-file": "munge.key", "seed-file": "munge.seed"}
        options = [f"--{name}={self.folder / file}" for name, file in files.items()]
        self._start_daemon("munged", "--foreground", "--force", *options)
        self._wait(lambda: (self.folder / "munge.sock").exists())
        self._start_daemon("slurmctld", "-D", "-c")
        for node in NODES:
            self.start_node(node)
        self._wait(lambda: self.run("sinfo", "--noheader", "--format=%T") == "idle")

    def start_node(self, node: str) -> None:
        self._start_daemon("slurmd", "-D", "-N", node, name=node)

    def _start_daemon(self, program: str, *options: str, name: str = "") -> None:
        with (self.folder / f"{name or program}.out").open("ab") as output:
            self._daemons[name or program] = subprocess.Popen(
                [program, *options],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def kill_node(self, node: str) -> list[int]:
        """Kill everything that runs on a node, at once, as a power failure does; the processes."""
        killed = processes_of(self._own, f"SLURMD_NODENAME={node}")
        stepds = {parent_of(pid) for pid in killed} - set(killed) - {os.getpid(), 1}
        self._daemons[node].kill()
        self._daemons[node].wait()
        for pid in (*stepds, *killed):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return killed

    def run(self, *command: str) -> str:
        """Run a command of Slurm; what it printed."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=60
        )
        return (done.stdout + done.stderr).strip()

    def _wait(self, condition) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            for name, daemon in self._daemons.items():
                said = (self.folder / f"{name}.out").read_text()
                assert daemon.poll() is None, f"{name} ended: {said}"
            assert time.monotonic() < deadline, self.run("sinfo")
            time.sleep(0.2)

    def close(self) -> None:
        if "slurmctld" in self._daemons:
            self.run("scancel", f"--user={getpass.getuser()}")
            deadline = time.monotonic() + 15
            while self.run("squeue", "--noheader") and time.monotonic() < deadline:
                time.sleep(0.3)
        for pid in processes_of(self._own, "SLURM_JOB_ID="):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for daemon in reversed(self._daemons.values()):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def processes_of(*variables: str) -> list[int]:
    """The processes whose environment has all of these variables; one that ends with `=` may have
    any value."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            texts = path.read_bytes().decode(errors="replace").split("\0")
            if all(
                any(text == each or (each[-1] == "=" and text.startswith(each)) for text in texts)
                for each in variables
            ):
                found.append(int(path.parent.name))
    return found


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 1


def find_free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
