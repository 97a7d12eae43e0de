"""What does pretraining buy, and which pretraining buys most? Accuracy after fine-tuning.

For each recipe of pretraining (`--try name=value,name=value`, the defaults if none is given) a base
is pretrained for the same number of minutes (or tokens), then fine-tuned over seeds and label
budgets. Beside the bases stand their controls: the same network from scratch, the counted start
without a step, TF-IDF and the regression on counted vectors. Validation accuracy of the last epoch
(nothing is chosen by it), mean over the seeds, lowest and highest; of networks also the log-loss.
The test part is not touched.

    python bench/transfer.py --minutes 4 --try vocab_size=8192 --try vocab_size=32768
    python bench/transfer.py --minutes 1 --labels 100 400 --seeds 5 --layers 2 --no-controls \\
        --try objective=causal --try objective=contrastive --try objective=causal+contrastive \\
        --finetune "" --finetune freeze=true,epochs=1

Each `--finetune name=value,…` fine-tunes the bases once more, with these settings. `--keep FOLDER`
keeps the bases there, and uses those that are there already.

Tasks: `rotten-tomatoes` (short sentences; corpus: imdb), `imdb` (2,000 long labelled reviews;
corpus: the other ones without labels), or any folder or file with `--corpus`.
"""

import argparse
import hashlib
import statistics
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headstart.baselines.linear import CooccurrenceClassifier, TfidfClassifier
from headstart.config import FinetuneConfig, PretrainConfig
from headstart.data.corpus import read_corpus
from headstart.data.dataset import Splits
from headstart.data.splits import read_dataset, take_budget
from headstart.run import NetworkRun, read_summary
from headstart.training.corpus import prepare_corpus
from headstart.training.finetune import finetune
from headstart.training.initialization import cooccurrence_vectors
from headstart.training.pretrain import pretrain
from recipes import parse

LONG_ROWS = 2_000  # labelled reviews of the task `imdb`
Judged = tuple[float, float | None]  # validation accuracy, and the log-loss of a network
Fit = Callable[[Splits, int], Judged]  # of the training rows of a budget, and a seed


def read_task(name: str, corpus: str | None, folder: Path) -> tuple[Splits, list[str]]:
    """The labelled parts, and the corpus without them."""
    if name != "imdb":
        return read_dataset(name), [corpus or "imdb"]
    whole = read_dataset("imdb")
    train, rest = take_budget(whole.train, str(LONG_ROWS), 0), folder / "imdb-rest.txt"
    labelled = {*train.texts, *whole.validation.texts}
    texts = (" ".join(text.split()) for text in whole.train.texts if text not in labelled)
    rest.write_text("\n".join(texts), encoding="utf-8")
    return replace(whole, train=train), [str(rest)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="rotten-tomatoes")
    parser.add_argument("--corpus")
    parser.add_argument("--labels", nargs="+", default=["100", "400", "all"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--tokens", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, help="by default the preset's")
    parser.add_argument("--preset", default="small")
    parser.add_argument("--try", dest="tries", action="append", default=[])
    parser.add_argument("--finetune", action="append", help="settings of fine-tuning")
    parser.add_argument("--no-controls", action="store_true")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        splits, corpus = read_task(given.task, given.corpus, folder)
        for text in given.tries or [""]:
            settings = {"task_text": True, **parse(text)}
            recipe = pretrain_recipe(given, corpus, settings)
            # Named by all that it depends on: a base that was kept is never another's.
            decided = repr((given.task, settings, sorted(vars(recipe).items())))
            run = folder / hashlib.sha256(decided.encode()).hexdigest()[:12]
            bench_base(given, splits, recipe, settings, text or "defaults", run)
        if not given.no_controls:
            report("TF-IDF", given, splits, tfidf)


def pretrain_recipe(given: Any, corpus: list[str], settings: dict[str, Any]) -> PretrainConfig:
    amount = {"tokens": given.tokens} if given.tokens else {"minutes": given.minutes}
    width = {"width": given.width} if given.preset == "small" else {}
    width |= {"layers": given.layers} if given.layers else {}
    chosen = {name: value for name, value in settings.items() if name != "task_text"}
    return PretrainConfig.create(
        **{
            "corpus": corpus,
            "threads": given.threads,
            "preset": given.preset,
            "evaluations": 2,
            **width,
            **amount,
            **chosen,
        }
    )


def bench_base(
    given: Any,
    splits: Splits,
    recipe: PretrainConfig,
    settings: dict[str, Any],
    name: str,
    run: Path,
) -> None:
    """Pretrain one base, and print its line and those of its controls."""
    held_out = [*splits.validation.texts, *(splits.test.texts if splits.test else [])]
    corpus = read_corpus(recipe.corpus).without(held_out)
    if settings["task_text"]:
        corpus = corpus.with_task_text(splits.train.texts)
    if not (run / "summary.json").is_file():
        pretrain(recipe, run, corpus=corpus, save_initial=run / "start")
    summary = read_summary(run)
    measured = ", ".join(f"{name} {value:.3f}" for name, value in summary["held_out"].items())
    print(
        f"\n{name}: {summary['tokens']:,} tokens in {summary['seconds']:.0f} s; {measured}",
        flush=True,
    )
    sources = {"pretrained": (run, False)}
    if not given.no_controls:
        sources |= {"counted start alone": (run / "start", False), "scratch": (run, True)}
    for source, (base, fresh) in sources.items():
        for how in given.finetune or [""]:
            title = f"{source}, {how}" if how else source
            report(title, given, splits, network(given, str(base), how, fresh=fresh))
    if given.no_controls:
        return
    tokenizer = NetworkRun.open(run).tokenizer
    prepared = prepare_corpus(recipe, corpus=corpus)
    width = NetworkRun.open(run).model.base.config.width
    vectors = cooccurrence_vectors(prepared, width=width, power=1.0)
    report("co-occurrence", given, splits, cooccurrence(tokenizer, vectors))


def network(given: Any, base: str, how: str, *, fresh: bool) -> Fit:
    def fit(part: Splits, seed: int) -> Judged:
        recipe = FinetuneConfig.create(
            **{
                "dataset": [given.task],
                "base": base,
                "fresh": fresh,
                "seed": seed,
                "preset": given.preset,
                "threads": given.threads,
                "epochs": epochs_for(len(part.train)),
                "selection_metric": "last",
                **parse(how),
            }
        )
        run = finetune(recipe, None, splits=part)
        last = run.require_task().metrics(run.validation_scores, part.validation)
        return last["accuracy"], last["loss"]

    return fit


def epochs_for(rows: int) -> int:
    """As in studies (`studies/plan.py`)."""
    return min(5, max(2, 500 // -(-rows // 16)))


def tfidf(part: Splits, seed: int) -> Judged:
    validation = (part.validation.texts, part.validation.labels)
    arm = TfidfClassifier().fit(part.train.texts, part.train.labels, validation=validation)
    return accuracy(arm.scores(part.validation.texts), arm.classes_, part), None


def cooccurrence(tokenizer: Any, vectors: Any) -> Fit:
    def fit(part: Splits, seed: int) -> Judged:
        train, held_out = (
            tokenizer.encode_arrays(rows.texts) for rows in (part.train, part.validation)
        )
        validation = (held_out, part.validation.labels)
        arm = CooccurrenceClassifier(vectors).fit(train, part.train.labels, validation=validation)
        return accuracy(arm.scores(held_out), arm.classes_, part), None

    return fit


def accuracy(probabilities: Any, classes: Any, part: Splits) -> float:
    found = np.asarray(classes)[np.asarray(probabilities).argmax(1)]
    return float((found == np.asarray(part.validation.labels)).mean())


def budgets(given: Any, splits: Splits) -> Iterator[tuple[str, list[Splits]]]:
    for budget in given.labels:
        yield (
            budget,
            [
                replace(splits, train=take_budget(splits.train, budget, seed))
                for seed in range(given.seeds)
            ],
        )


def report(name: str, given: Any, splits: Splits, fit: Fit) -> None:
    """One line: accuracy and, of networks, log-loss at each budget."""
    cells = []
    for budget, parts in budgets(given, splits):
        judged = [fit(part, seed) for seed, part in enumerate(parts)]
        found = [100 * correct for correct, _ in judged]
        cell = f"{budget}: {statistics.mean(found):.1f} ({min(found):.1f} to {max(found):.1f})"
        losses = [loss for _, loss in judged if loss is not None]
        cells.append(cell + (f", {statistics.mean(losses):.3f}" if losses else ""))
    print(f"  {name:20} " + "   ".join(cells), flush=True)


if __name__ == "__main__":
    main()
