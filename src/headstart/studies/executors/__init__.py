"""Executors: where a study's trainings run, one file each: this machine, Ray, Slurm.

Another package adds one with an entry point in the group `headstart.executors`, a program with
`register`. Runner and command line know executors through this registry only; neither Ray nor
submitit is imported before a study asks for it.
"""

from headstart.errors import HeadstartError
from headstart.registry import Registry
from headstart.studies.executors.protocol import Executor

BUILT_IN = ("local", "ray", "slurm")
EXECUTORS: Registry[Executor] = Registry(
    "executor",
    group="headstart.executors",
    base=Executor,
    built_in={name: f"headstart.studies.executors.{name}:EXECUTOR" for name in BUILT_IN},
)


def register(executor: Executor) -> Executor:
    """Make an executor known under its name, for this process; returns it."""
    return EXECUTORS.add(executor)


def find_executor(name: str) -> Executor:
    """The executor of this name; an unknown one is an error that lists those there are.

    Example
    -------
    >>> find_executor("local").name
    'local'
    """
    found = EXECUTORS.get(name)
    if found is None:
        known = ", ".join(EXECUTORS.entries())
        raise HeadstartError(f"unknown executor {name!r}; there are {known}")
    return found


__all__ = ["EXECUTORS", "Executor", "find_executor", "register"]
