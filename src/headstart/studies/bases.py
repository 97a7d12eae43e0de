"""What the arms start from: a base for each objective, its tokenizer, and counted vectors.

By default a base is pretrained once, not once per seed: the seeds of a study vary the labelled rows
and the fresh head, and its intervals say nothing of how another pretraining would have gone. With
`--bases` there are several, and the seeds take turns with them.
"""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from headstart.config import PretrainConfig, is_run
from headstart.data.corpus import Corpus
from headstart.data.tokenizers import train_tokenizer
from headstart.files import replacing
from headstart.run import SUMMARY, NetworkRun
from headstart.studies.recipe import StudyRecipe
from headstart.studies.results import PretrainingCurve
from headstart.training.callbacks import METRICS_FILE, Callback, loss_curve, read_metrics
from headstart.training.corpus import PretrainData
from headstart.training.initialization import cooccurrence_vectors
from headstart.training.pretrain import pretrain

PROMPTS = 3


def pretrain_recipe(
    recipe: StudyRecipe,
    objective: str,
    *,
    seed: int,
    steps: int | None,
    threads: int,
) -> PretrainConfig:
    """The recipe of the study's base for an objective."""
    return PretrainConfig.create(
        corpus=recipe.corpus or recipe.dataset,  # of the dataset, only training texts are read
        task_text=recipe.dataset[0] if recipe.task_text else None,
        objective=objective,
        preset=recipe.preset,
        tokenizer=recipe.tokenizer,
        encoding=recipe.encoding,
        seed=seed,
        documents=recipe.documents,
        held_out=recipe.held_out,
        steps=steps,
        threads=threads,
        precision=recipe.precision,
        device="cpu",
        **recipe.sizes(),
    )


def pretrain_base(
    recipe: PretrainConfig,
    folder: Path,
    corpus: Corpus,
    listener: Callback,
    *,
    keep_start: str | None = None,
) -> Path:
    """The base of one objective: used if it is finished, resumed if it is not.

    `keep_start` names a folder inside the base's for the weights before the first step.
    """
    if (folder / SUMMARY).is_file():
        return folder
    resume = is_run(folder)
    if not resume:
        shutil.rmtree(folder, ignore_errors=True)  # killed before it was a run
    pretrain(
        recipe,
        folder,
        resume=resume,
        callbacks=[listener],
        corpus=corpus,
        save_initial=None if keep_start is None else folder / keep_start,
    )
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)  # it has ended
    return folder


def train_task_tokenizer(texts: Sequence[str], vocab_size: int, folder: Path) -> str:
    """Without any corpus, the labelled training texts are all there is to learn pieces from."""
    folder.mkdir(parents=True, exist_ok=True)
    return str(train_tokenizer(texts, vocab_size=vocab_size).save(folder))


def write_vectors(prepared: PretrainData, width: int, path: Path, callback: Callback) -> str:
    """Vectors for arms that classify with them: U·S, which does better there than U·√S."""
    if not path.is_file():
        vectors = cooccurrence_vectors(prepared, width=width, power=1.0, callback=callback)
        with replacing(path) as temporary:
            save_file({"vectors": vectors}, temporary)
    return str(path)


def pretraining_curve(folder: Path, objective: str, texts: Sequence[str]) -> PretrainingCurve:
    """How the base learned, and what it generates or fills in for texts of the dataset."""
    path = folder / METRICS_FILE
    points = loss_curve(read_metrics(path) if path.is_file() else [])
    return PretrainingCurve(objective, points, samples(folder, texts))


def samples(folder: Path, texts: Sequence[str]) -> list[dict[str, str]]:
    """What a causal base writes after the first words of a text, or a masked one fills in."""
    run = NetworkRun.open(folder)
    say: Callable[[Any, str], dict[str, str] | None] = _written if run.causal else _filled
    found: list[dict[str, str]] = []
    for text in texts:
        one = say(run, text)
        if one is not None:
            found.append(one)
        if len(found) == PROMPTS:
            break
    return found


def _written(run: Any, text: str) -> dict[str, str] | None:
    from headstart.language_model import generate

    prompt = " ".join(text.split()[:3])[:60]
    if not prompt:
        return None
    tokens = [token for token, _ in generate(run, prompt, tokens=24)]
    ids = [*run.tokenizer.encode([prompt])[0], *tokens]
    return {"prompt": prompt, "text": run.tokenizer.decode(ids)}


def _filled(run: Any, text: str) -> dict[str, str] | None:
    from headstart.language_model import GAP, fill

    words = text.split()[:12]
    if len(words) < 3 or run.tokenizer.mask_id is None:
        return None
    words[len(words) // 2] = GAP
    prompt = " ".join(words)
    candidates = fill(run, prompt)[0]
    return {"prompt": prompt, "text": " · ".join(word.strip() for word, _ in candidates)}
