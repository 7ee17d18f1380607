"""A program that exports or imports a run and does not get to the end.

python move_program.py STORE export RUN FILE killed|full
python move_program.py STORE import - FILE killed
"""

import os
import resource
import signal
import sys
from pathlib import Path

from parley.errors import StoreError
from parley.store import open_store
from parley.store.sqlite import run_copy


def main(place, way, run, path, fault):
    store, told = open_store(place), []

    def tell(how):
        told.append(how)
        if fault == "killed" and len(told) == 5:
            os.kill(os.getpid(), signal.SIGKILL)

    if fault == "killed":
        run_copy.ROWS_BETWEEN_REPORTS = run_copy.PAGES = 1
    if fault == "full":  # no file may grow beyond a limit: writes fail as on a full disk
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    try:
        if way == "export":
            store.export_run(store.find(run), Path(path), False, tell)
        else:
            store.import_run(Path(path), tell)
    except StoreError as wrong:
        print(wrong)


if __name__ == "__main__":
    main(*sys.argv[1:])
