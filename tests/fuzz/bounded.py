"""Fuzzers run in two sizes: a few examples with every test run, many with `make test-all`."""

import pytest
from hypothesis import HealthCheck, settings

few_or_many = pytest.mark.parametrize(
    "sized",
    [
        pytest.param(15, id="few"),
        pytest.param(600, id="many", marks=pytest.mark.slow),
    ],
)


def of_size(count):
    """Settings for so many examples, however long each takes."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(max_examples=count, deadline=None, suppress_health_check=slow)
