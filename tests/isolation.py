"""The mark of tests that need bubblewrap: where it is missing they are skipped, and in CI they
fail."""

import os
import shutil

import pytest

MISSING = "bubblewrap is not installed: apt-get install bubblewrap"


def wanted() -> bool:
    """Whether to run; in CI always, where a machine without isolation must not look as if it had
    been tested."""
    return shutil.which("bwrap") is not None or bool(os.environ.get("CI"))


isolated = pytest.mark.skipif(not wanted(), reason=MISSING)
