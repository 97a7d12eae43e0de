"""Headstart: pretrain a small Transformer on your own text, swap its head, and measure the gain.

>>> from headstart import HeadstartClassifier, load
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headstart.estimators import HeadstartClassifier as HeadstartClassifier
    from headstart.estimators import HeadstartEmbedder as HeadstartEmbedder
    from headstart.run import load as load

__all__ = ["HeadstartClassifier", "HeadstartEmbedder", "load"]
# PyTorch and scikit-learn take seconds to import; `headstart --help` must not wait for them.
_MODULES = {
    "HeadstartClassifier": "headstart.estimators",
    "HeadstartEmbedder": "headstart.estimators",
    "load": "headstart.run",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'headstart' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
