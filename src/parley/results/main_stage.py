"""Which matches of an `evolve` run the main tables show: the last round of the first arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parley.plans.evolve_settings import EvolveSettings
from parley.store import MatchRow


@dataclass(frozen=True)
class MainStage:
    """The round that the main tables show; a stream shows all of its windows."""

    arm: str
    stage: int | None  # None: all windows of a stream
    last: int  # the last round that is planned

    def includes(self, match: MatchRow) -> bool:
        """Whether a match counts in the main tables."""
        if self.stage is None:
            return match.arm == self.arm
        return match.stage == self.stage and match.arm in (self.arm, "")

    @property
    def text(self) -> str:
        """What the main tables show, in words."""
        if self.stage is None:
            return f"the table shows the stream of arm {self.arm}"
        which = "the standard round" if self.stage == 0 else f"round {self.stage} of {self.last}"
        early = " (later rounds were not played)" if self.stage < self.last else ""
        return f"the table shows {which} of arm {self.arm}{early}"


def choose_main_stage(
    settings: EvolveSettings | None, ended: Sequence[MatchRow]
) -> MainStage | None:
    """The last round of the first arm that has ended matches; None if the run does not evolve."""
    if settings is None:
        return None
    name, arm = settings.first, settings.arms[settings.first]
    if arm.window is not None:
        return MainStage(name, None, 0)
    stages = [match.stage for match in ended if match.arm in (name, "")]
    return MainStage(name, max(stages, default=0), arm.rounds)
