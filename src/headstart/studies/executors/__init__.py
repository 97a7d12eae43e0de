"""Executors: where a study's trainings run, one file each: this machine, Ray, Slurm.

Neither Ray nor submitit is imported before a study asks for it.
"""

from importlib import import_module

from headstart.studies.executors.protocol import Executor

EXECUTORS = ("local", "ray", "slurm")


def find_executor(name: str) -> Executor:
    """Return the executor of this name.

    Example
    -------
    >>> find_executor("local").name
    'local'
    """
    found: Executor = import_module(f"headstart.studies.executors.{name}").EXECUTOR
    return found


__all__ = ["EXECUTORS", "Executor", "find_executor"]
