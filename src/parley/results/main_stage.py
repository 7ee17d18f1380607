"""Which matches of an `evolve` run the main tables show: the last stage of the first arm."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from parley.plans.evolve_settings import EvolveSettings


@dataclass(frozen=True)
class MainStage:
    """The stage that the main tables show; a stream shows all of its windows."""

    arm: str
    stage: int | None  # None: all windows of a stream
    last: int  # the last stage that is planned

    def includes(self, stage: int, arm: str) -> bool:
        """Whether the matches of a stage and arm count in the main tables."""
        if self.stage is None:
            return arm == self.arm
        return stage == self.stage and arm in (self.arm, "")

    @property
    def text(self) -> str:
        """What the main tables show, in words."""
        if self.stage is None:
            return f"the table shows the stream of arm {self.arm}"
        which = "the standard stage" if self.stage == 0 else f"stage {self.stage} of {self.last}"
        early = " (later stages were not played)" if self.stage < self.last else ""
        return f"the table shows {which} of arm {self.arm}{early}"


def choose_main_stage(
    settings: EvolveSettings | None, ended: Iterable[tuple[int, str]]
) -> MainStage | None:
    """The last stage of the first arm that has ended matches; None if the run does not evolve.
    `ended`: the stages and arms with such matches."""
    if settings is None:
        return None
    name, arm = settings.first, settings.arms[settings.first]
    if arm.window is not None:
        return MainStage(name, None, 0)
    stages = [stage for stage, by in ended if by in (name, "")]
    return MainStage(name, max(stages, default=0), arm.stages)
