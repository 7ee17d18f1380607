"""The words that stand around experiences when they are shown."""

from __future__ import annotations

from parley.rules.prompts import Prompt

SUCCEEDED = Prompt("succeeded", "An earlier attempt, which was a success:")
FAILED = Prompt("failed", "An earlier attempt, which failed:")
