"""Headstart: pretrain a small Transformer on your own text, swap its head, and measure the gain.

>>> from headstart import HeadstartClassifier, load
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headstart.classifier import HeadstartClassifier as HeadstartClassifier
    from headstart.embedder import HeadstartEmbedder as HeadstartEmbedder
    from headstart.run import load as load
    from headstart.training.listener import register_tracker as register_tracker

__all__ = ["HeadstartClassifier", "HeadstartEmbedder", "load", "register_tracker"]


def __getattr__(name: str) -> Any:
    # PyTorch and scikit-learn take seconds to import; `headstart --help` must not wait for them.
    if name == "HeadstartClassifier":
        from headstart.classifier import HeadstartClassifier

        return HeadstartClassifier
    if name == "HeadstartEmbedder":
        from headstart.embedder import HeadstartEmbedder

        return HeadstartEmbedder
    if name == "load":
        from headstart.run import load

        return load
    if name == "register_tracker":
        from headstart.training.listener import register_tracker

        return register_tracker
    raise AttributeError(f"module 'headstart' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
