"""llama.cpp's own HTTP server with the embedded model's weights, in a process of its own: an
endpoint that is not ours.

python -m tests.llamacpp SLOTS     prints its address
"""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path


def serve(slots: int) -> None:
    os.environ |= {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}
    import xllamacpp

    from parley import downloads as packaged
    from parley.providers.embedded import SMOLLM2

    params = xllamacpp.CommonParams()
    params.model.path = str(packaged.obtain_file(SMOLLM2))
    params.model_alias = {"smollm2"}
    params.n_parallel, params.n_ctx = slots, slots * 2048
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = params.fit_params = params.ui = False
    params.verbosity = -1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


@contextmanager
def llamacpp(slots: int):
    """The address of a server with so many slots, for as long as this lasts."""
    command = [sys.executable, "-m", "tests.llamacpp", str(slots)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, cwd=Path(__file__).parents[1], **pipes) as process:
        try:
            yield f"{process.stdout.readline().strip()}/v1"
        finally:
            process.kill()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
