"""Which arms a study holds against each other: the chain from the control to the headline arm.

Each arm of the chain has one thing more than the one before: `scratch`, then `counted` (counting),
then `pretrained` (pretraining). So the difference between its ends is the sum of its steps, and a
step's effect is credited to nothing else. An arm of the chain that was not run leaves its effect
inside the next step, and the verdict says so.
"""

from collections.abc import Collection
from dataclasses import dataclass

from headstart.studies.arms import arms, headline_arm
from headstart.studies.arms.arm import Arm

Series = tuple[str, str]  # arm, objective: one line of a picture


def series_of(arm: Arm, objective: str) -> Series:
    """The series of an arm; one that depends on no objective has an empty one."""
    return (arm.name, objective if arm.uses_objective else "")


@dataclass(frozen=True)
class Comparison:
    """The arm that the study is about, the way to it, and the references that stand beside."""

    chain: tuple[Arm, ...]  # from the control to the headline arm
    missing: tuple[Arm, ...]  # arms between them that were not run
    references: tuple[Arm, ...]

    @property
    def headline(self) -> Arm:
        return self.chain[-1]

    @property
    def control(self) -> Arm:
        """What lacks everything that the headline arm has."""
        return self.chain[0]

    @property
    def nearest(self) -> Arm:
        """What lacks only the headline arm's own effect, as far as it was run."""
        return self.chain[-2]

    def steps(self, objective: str) -> list[tuple[str, Series, Series]]:
        """Each step's effect, the series that has it, and the one that lacks it."""
        series = [series_of(arm, objective) for arm in self.chain]
        effects = [arm.effect for arm in self.chain[1:]]
        return list(zip(effects, series[1:], series[:-1], strict=True))


def find_comparison(names: Collection[str] | None = None) -> Comparison | None:
    """The comparison that a study of these arms makes; none if the arm it is about is missing.

    Parameters
    ----------
    names : collection of str, optional
        The arms that were run; by default all that there are.
    """
    headline, known = headline_arm(names), arms()
    if headline is None:
        return None
    way = [known[name] for name in (headline.compared_with, *headline.between) if name in known]
    ran = [arm for arm in way if names is None or arm.name in names]
    chain = (*(ran or way[:1]), headline)
    between = [arm for arm in way[1:] if arm not in ran]
    references = [arm for arm in known.values() if arm.is_reference and arm not in chain]
    return Comparison(chain, tuple(between), tuple(references))
