"""The files of a run except its model: config, identity, plan, summary and model card.

What is written when a run starts lets a resume find the same things again; the plan holds every
decision that depends on time.
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from headstart.config import (
    Config,
    FinetuneConfig,
    MachineSettings,
    PretrainConfig,
    check_new,
    hf_name,
    is_run,
    read_settings,
)
from headstart.data.dataset import Splits
from headstart.data.sources import check_outside
from headstart.data.tokenizers import Tokenizer, hash_of
from headstart.errors import HeadstartError
from headstart.evaluation.metrics import wilson_interval
from headstart.files import IDENTITY, read_object, write_text
from headstart.machine import peak_memory, resolve_machine
from headstart.model.checkpoint import WEIGHTS
from headstart.model_card import CardScore, usage, write_card
from headstart.tasks.task import Task
from headstart.training.batches import EpochBatches
from headstart.training.corpus import PretrainData
from headstart.training.initialization import StartModel
from headstart.training.trainer import Trainer, TrainState

PLAN_FILE = "plan.json"
C = TypeVar("C", bound=MachineSettings)
DEFAULT_MINUTES = 10.0
TIMED_STEPS = 4
EVALUATION_SHARE = 0.03  # of the minutes, at most
# What a summary takes over from the plan.
PLANNED = ("task", "labels", "train_rows", "validation_rows", "truncated", "parameters", "swap",
           "averaged_epochs")  # fmt: skip
BASE_LIMITS = (
    "It can only repeat what its corpus says, including its errors.",
    "The held-out documents come from the same corpus: other texts are harder to predict.",
)
TASK_LIMITS = (
    "It knows the labels above and no other: every prediction is one of them.",
    "It repeats what its labelled texts and its base's corpus say, also where that is wrong or "
    "unfair.",
    "Where validation rows selected the epoch or the settings, their numbers are a little too "
    "good. `headstart evaluate` on labelled texts that it has not seen gives unbiased ones.",
)


def start_config(config: C, folder: Path | None, *, resume: bool, sources: list[str]) -> C:
    """Check the config and the folder, and fill in what the machine decides.

    Parameters
    ----------
    sources : the files that are read; none may lie in the folder.
    """
    config.validate()
    if folder is not None:
        check_outside(folder, sources)
    if folder is not None and resume:
        config = config.resumed(folder)
    elif folder is not None:
        check_new(folder)
    return resolve_machine(config)


def write_start(
    folder: Path, config: Config, identity: dict[str, str], plan: dict[str, Any]
) -> None:
    """Write identity, plan and, last, the config: with it, the folder is a run."""
    write_text(folder / IDENTITY, json.dumps(identity, indent=2) + "\n")
    write_text(folder / PLAN_FILE, json.dumps(plan, indent=2, ensure_ascii=False) + "\n")
    config.save(folder)


def read_plan(folder: Path) -> dict[str, Any]:
    """Read the plan that a run was started with."""
    return read_object(folder / PLAN_FILE, fix="start the run again, in another folder")


def check_identity(identity: dict[str, str], folder: Path) -> None:
    """Reject a resume with other data than the run was started with."""
    path = folder / IDENTITY
    fix = "restore the file from a copy, or start another run"
    saved = read_object(path, fix=fix) if path.is_file() else {}
    for name, fingerprint in identity.items():
        if saved.get(name) != fingerprint:
            raise HeadstartError(
                f"the {name} is not the one that the run was started with",
                where=folder,
                fix=f"restore the {name}, or start another run",
            )


def dataset_identity(
    config: FinetuneConfig, splits: Splits[Any], tokenizer: Tokenizer
) -> dict[str, str]:
    """Return fingerprints of the rows, the tokenizer and the base of a fine-tuning."""
    parts = [
        {name: value for name, value in vars(part).items() if value is not None}
        for part in (splits.train, splits.validation)
    ]
    identity = {
        "dataset": hash_of(json.dumps(parts, default=list).encode()),
        "tokenizer": tokenizer.fingerprint,
    }
    return identity if config.base is None else {**identity, "base": base_fingerprint(config.base)}


def base_fingerprint(base: str) -> str:
    """Return a fingerprint of a base's weights."""
    name = hf_name(base)
    if name is not None:
        from headstart.interop.huggingface import fingerprint

        return fingerprint(name)
    return hash_of((Path(base) / WEIGHTS).read_bytes())


def overlap_note(config: FinetuneConfig) -> str | None:
    """Return a warning, if the base may have read texts that it will be evaluated on.

    A base whose pretraining was given the dataset (`task_text`) has not read its held-out texts,
    unless they are split in another way here. A base that continued another one has read that
    one's corpus, too.
    """
    default_split = not (config.validation or config.test or config.split_seed)
    datasets = {Path(one).resolve() for one in config.dataset}
    corpora: list[str] = []
    seen: set[str] = set()
    base = None if config.fresh else config.base
    while base is not None and base not in seen and is_run(Path(base)):
        seen.add(base)
        settings = read_settings(Path(base))
        task_text = str(settings.get("task_text", ""))
        removed = task_text and default_split and Path(task_text).resolve() in datasets
        if not removed:
            corpora += [str(one) for one in settings.get("corpus", []) if one not in corpora]
        base = settings.get("base")
    if not corpora:
        return None
    columns = {"--text-column": config.text_column, "--label-column": config.label_column}
    task = {} if config.task == "classification" else {"--task": config.task}
    named = [word for pair in {**task, **columns}.items() if pair[1] for word in pair]
    command = ["headstart", "inspect", *config.dataset, *named, "--corpus", corpora[0]]
    return (
        f"the base was pretrained on {', '.join(corpora)}, which may contain validation or test "
        f"texts: check with {shlex.join(map(str, command))}; headstart pretrain --task-text "
        f"{shlex.quote(config.dataset[0])} removes them"
    )


def plan_pretraining(
    config: PretrainConfig, data: PretrainData, trainer: Trainer
) -> dict[str, Any]:
    """Turn minutes, epochs or tokens into steps."""
    step_seconds = trainer.time_steps(range(TIMED_STEPS)) / TIMED_STEPS
    evaluation_seconds = trainer.time_evaluation()
    step_tokens = config.rows * config.length
    corpus_tokens = data.train.tokens
    evaluations = config.evaluations
    if config.steps:
        steps = config.steps
    elif config.tokens:
        steps = -(-config.tokens // step_tokens)
    elif config.epochs:
        steps = round(config.epochs * corpus_tokens / step_tokens)
    else:
        budget = 60 * (config.minutes or DEFAULT_MINUTES)
        evaluations = min(evaluations, int(EVALUATION_SHARE * budget / evaluation_seconds))
        steps = int((budget - max(1, evaluations) * evaluation_seconds) / step_seconds)
    steps, evaluations = max(1, steps), max(1, evaluations)
    return {
        "steps": steps,
        "evaluate_every": -(-steps // evaluations),
        "tokens": steps * step_tokens,
        "epochs": steps * step_tokens / corpus_tokens,
        "corpus_tokens": corpus_tokens,
        "parameters": sum(one.numel() for one in trainer.model.parameters()),
        "peak_memory_bytes": peak_memory(),
        "seconds": steps * step_seconds + evaluations * evaluation_seconds,
        "threads": config.threads,
        "precision": config.precision,
    }


def plan_finetuning(
    config: FinetuneConfig,
    start: StartModel,
    batches: EpochBatches,
    trainer: Trainer,
    *,
    notes: Sequence[str | None],
    timed: bool,
) -> dict[str, Any]:
    """Decide on the epochs; without minutes, nothing is timed unless `timed`."""
    epochs, seconds = config.epochs, None
    if config.minutes is not None or timed:
        epochs, seconds = _fitting_epochs(config, batches, trainer)
    steps = epochs * batches.steps_per_epoch
    averaged = trainer.average.count(steps)
    notes = [*notes, batches.dropout_note()]
    if epochs < config.epochs:
        notes.append(f"{epochs} of {config.epochs} epochs fit into {config.minutes:g} minutes")
    if config.average:
        words = (
            f"the weights of the last {averaged} epochs" if averaged else "nothing: too few epochs"
        )
        notes.append(f"averaged: {words}")
    task = batches.task
    return {
        "task": task.name,
        "labels": list(task.labels),
        "train_rows": batches.train_rows,
        "steps": steps,
        "steps_per_epoch": batches.steps_per_epoch,
        "epochs": epochs,
        "averaged_epochs": averaged,
        "parameters": sum(one.numel() for one in start.model.parameters()),
        "swap": [asdict(row) for row in start.swap],
        "length": batches.length,
        "truncated": batches.examples.cut,
        "notes": [note for note in notes if note],
        "seconds": seconds,
        "threads": config.threads,
        "precision": config.precision,
    }


def _fitting_epochs(
    config: FinetuneConfig, batches: EpochBatches, trainer: Trainer
) -> tuple[int, float]:
    """Return the epochs that fit into the minutes, and the seconds that they take.

    Steps with long texts take longer: time is measured per token of padded rows, on steps from
    all over the epoch.
    """
    steps = batches.steps_per_epoch
    timed_steps = sorted({number * steps // TIMED_STEPS for number in range(TIMED_STEPS)})
    seconds = trainer.time_steps(timed_steps)
    per_token = seconds / sum(batches.padded_tokens(step) for step in timed_steps)
    training = per_token * sum(batches.padded_tokens(step) for step in range(steps))
    epoch = training + trainer.time_evaluation()
    # The linear probe reads every training text once, without a gradient.
    before = training / 3 if config.head_init == "probe" else 0.0
    epochs = config.epochs
    if config.minutes is not None:
        epochs = min(epochs, int((60 * config.minutes - before) / epoch))
    if epochs < 1:
        needed = (before + epoch) / 60
        raise HeadstartError(
            f"one epoch takes about {needed:.2g} minutes with --threads {config.threads}, and "
            f"--minutes is {config.minutes:g}",
            fix=f"give --minutes {1.1 * needed:.2g} or more, fewer rows, or a smaller network",
            code="does-not-fit",
        )
    return epochs, before + epochs * epoch


def write_pretraining_card(
    folder: Path, config: PretrainConfig, summary: dict[str, Any], identity: dict[str, str]
) -> None:
    """Describe what a base was trained on, how, and how good it is."""
    found = summary["held_out"]
    facts = {
        "base": config.base,
        "corpus": ", ".join(Path(source).name for source in config.corpus),
        "objective": config.objective,
        "network": f"{config.preset if config.base is None else 'as the base'}, "
        f"{summary['parameters']:,} parameters",
        "embedding initialisation": config.embedding_init if config.base is None else "the base",
        "training": f"{summary['tokens']:,} tokens in {summary['steps']:,} steps",
        "learning rate": f"{config.learning_rate:g}",
        "seed": config.seed,
    }
    on = f"held-out documents, at step {summary['best_step']:,}, whose weights are saved"
    unigram = f"a unigram model has {summary['unigram_perplexity']:,.1f}"
    scores = [
        CardScore("loss", f"{found['loss']:.3f}", on),
        CardScore("perplexity", f"{found['perplexity']:,.1f}; {unigram}", on),
    ]
    if "bits_per_byte" in found:
        scores.append(CardScore("bits per byte", f"{found['bits_per_byte']:.3f}", on))
    causal = config.objective == "causal"
    use = "continue a text (`headstart generate`)" if causal else "fill gaps (`headstart fill`)"
    write_card(
        folder,
        title="A base pretrained with Headstart",
        facts={name: value for name, value in facts.items() if value is not None},
        scores=scores,
        fingerprints=identity,
        use=f"It can {use} and be fine-tuned (`headstart finetune --base`). Every setting is in "
        "`config.toml`.",
        limits=BASE_LIMITS,
    )


def finetune_summary(
    config: FinetuneConfig,
    plan: dict[str, Any],
    state: TrainState,
    splits: Splits[Any],
) -> dict[str, Any]:
    """Return the content of a fine-tuning's `summary.json`: the numbers of the saved weights."""
    epochs: list[dict[str, Any]] = []
    for number, row in enumerate(state.history, start=1):
        found = {"epoch": number, "best": row["step"] == state.best_step, **row}
        found["validation_loss"] = found.pop("loss")
        del found["total_seconds"]
        epochs.append(found)
    best = next(row for row in epochs if row["best"])
    hidden = ("epoch", "step", "best")
    return {
        "base": config.base,
        "seed": config.seed,
        "test_rows": 0 if splits.test is None else len(splits.test),
        **{name: plan[name] for name in PLANNED},
        "steps": state.step,
        "tokens": state.tokens,
        "seconds": state.seconds,
        "epochs": epochs,
        "best_epoch": best["epoch"],
        "validation": {name: value for name, value in best.items() if name not in hidden},
    }


def write_finetuning_card(
    folder: Path,
    config: FinetuneConfig,
    task: Task[Any],
    summary: dict[str, Any],
    identity: dict[str, str],
    doubts: list[str],
) -> None:
    """Describe what a model was trained on, how, how good it is, and what is suspicious."""
    last = config.selection_metric == "last"
    epochs = f"{len(summary['epochs'])}, "
    epochs += "the last one is saved" if last else f"epoch {summary['best_epoch']} is saved"
    if summary["averaged_epochs"]:
        epochs += f"; weights averaged over the last {summary['averaged_epochs']}"
    labels = ", ".join(summary["labels"][:30]) or "spans of a text"
    if len(summary["labels"]) > 30:
        labels += f" and {len(summary['labels']) - 30} more"
    role = "for the curves alone" if last else "selected the epoch"
    facts = {
        "task": summary["task"],
        "labels": labels,
        "dataset": ", ".join(Path(source).name for source in config.dataset),
        "rows": f"{summary['train_rows']:,} for training, {summary['validation_rows']:,} {role}",
        "base": "none: trained from scratch" if config.base is None else Path(config.base).name,
        "network": f"{summary['parameters']:,} parameters",
        "epochs": epochs,
        "learning rate": f"{config.learning_rate:g}",
        "seed": config.seed,
    }
    write_card(
        folder,
        title=f"A model for {summary['task']}, fine-tuned with Headstart",
        facts=facts,
        scores=_validation_scores(task, summary),
        fingerprints=identity,
        use=usage(len(task.input_names)),
        limits=[*TASK_LIMITS, *doubts],
    )


def _validation_scores(task: Task[Any], summary: dict[str, Any]) -> list[CardScore]:
    rows = summary["validation_rows"]
    on = f"validation, {rows:,} {task.row_name}"
    scores = []
    for name, value in summary["validation"].items():
        if name in ("train_loss", "validation_loss", "seconds"):
            continue
        score = CardScore(name.replace("_", " "), value, on)
        if name == "accuracy" and task.whole_texts:  # a share of the rows
            interval = wilson_interval(round(value * rows), rows)
            score = CardScore(name, value, on, interval.low, interval.high)
        scores.append(score)
    return scores
