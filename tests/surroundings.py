"""What is installed beside Parley stays out of the tests."""

import functools
import importlib.metadata

GROUPS = ("parley.datasets", "parley.providers", "parley.retrievers", "parley.tasks")


def hide_other_packages():
    """Hide what packages of others bring to Parley, and leave what a test installs later.

    Call it before anything of Parley is imported."""
    found = importlib.metadata.entry_points
    others = {identity(entry) for group in GROUPS for entry in found(group=group)}
    if not others:
        return

    @functools.wraps(found)
    def entry_points(**wanted):
        return importlib.metadata.EntryPoints(
            entry for entry in found(**wanted) if identity(entry) not in others
        )

    importlib.metadata.entry_points = entry_points


def identity(entry):
    """Where a package is installed, and what it brings by which name."""
    return str(entry.dist.locate_file("")), entry.dist.name, entry.group, entry.name
