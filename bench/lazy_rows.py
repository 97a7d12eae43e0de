"""Measure whether updating only the rows that a step used raises the held-out loss.

Pretrains the same network on the same batches twice: with Headstart's optimizer, and with dense
AdamW, in which momentum also moves the rows of the vocabulary that a step did not use.

    python bench/lazy_rows.py                         # small, causal and masked, IMDb's texts
    python bench/lazy_rows.py --corpus FILE --preset lab --tokenizer DICTIONARY
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from headstart.config import PretrainConfig
from headstart.training import trainer
from headstart.training.optimizer import RowAdamW
from headstart.training.pretrain import pretrain


class DenseAdamW(RowAdamW):
    """The same optimizer with dense gradients: every row is updated."""

    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and parameter.grad.is_sparse:
                    parameter.grad = parameter.grad.to_dense()
        return super().step(closure)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", default="imdb")
    parser.add_argument("--preset", default="small")
    parser.add_argument("--tokenizer")
    parser.add_argument("--tokens", type=int, default=600_000)
    parser.add_argument("--objectives", nargs="+", default=["causal", "masked"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    make = trainer.make_optimizer

    def dense(*arguments: Any, **settings: Any) -> RowAdamW:
        optimizer = make(*arguments, **settings)
        optimizer.__class__ = DenseAdamW
        return optimizer

    sizes = {} if given.preset == "lab" else {"width": 128, "layers": 2}
    print(f"{'':32}{'held-out loss':>14}{'seconds':>9}")
    for objective in given.objectives:
        for seed in range(given.seeds):
            for name, maker in (("touched rows", make), ("dense", dense)):
                trainer.make_optimizer = maker
                config = PretrainConfig.create(
                    corpus=[given.corpus],
                    preset=given.preset,
                    tokenizer=given.tokenizer,
                    objective=objective,
                    tokens=given.tokens,
                    threads=given.threads,
                    seed=seed,
                    softmax="sampled",
                    **sizes,
                )
                with tempfile.TemporaryDirectory() as folder:
                    found = pretrain(config, Path(folder) / "run").summary
                title = f"{objective}, seed {seed}, {name}"
                loss, seconds = found["held_out"]["loss"], found["seconds"]
                print(f"{title:32}{loss:14.3f}{seconds:9.0f}", flush=True)


if __name__ == "__main__":
    main()
