"""What a pretraining works with, prepared by the first process and then by those beside it."""

import base64
import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from headstart.errors import HeadstartError
from headstart.machine import choose_threads
from headstart.objectives import find_objective
from headstart.settings import from_dict
from headstart.text.reading.corpus import Corpus
from headstart.text.reading.sources import check_outside
from headstart.text.tokenizers.tokenizer import Tokenizer, load_tokenizer
from headstart.training.listener import Listener
from headstart.training.prepare import check_corpus, prepare
from headstart.training.pretrain_loop import PretrainSetup, with_output
from headstart.training.processes.ranks import ONE, Ranks
from headstart.training.recipe import PretrainRecipe, read_recipe
from headstart.training.recipe_file import check_identity, refuse_a_second_run, resumed


def prepare_pretraining(
    recipe: PretrainRecipe,
    folder: Path,
    *,
    resume: bool = False,
    listener: Listener | None = None,
    corpus: Corpus | None = None,
    save_seconds: float = 60.0,
    ranks: Ranks = ONE,
) -> PretrainSetup:
    """Read, check and tokenize the corpus. A resumed run must find the same corpus again.

    Of several processes this is what the first one does; the others call `follow_preparation`.
    """
    listener = listener or Listener()
    check_outside(folder, recipe.corpus)
    recipe = recipe.changed(processes=ranks.count)
    if resume:
        recipe = _resumed(recipe, folder)
    else:
        refuse_a_second_run(folder)
    torch.set_num_threads(choose_threads(recipe.threads or None))
    own = load_tokenizer(folder) if resume else None
    data = prepare(recipe, stages=listener.stage, corpus=corpus, tokenizer=own)
    objective = find_objective(recipe.objective)(mask_share=recipe.mask_share)
    setup = PretrainSetup(
        recipe, folder, resume, data, objective, save_seconds=save_seconds, ranks=ranks
    )
    if recipe.output != "auto":
        setup = with_output(setup, recipe.output)
    if resume:
        check_identity(setup.data.identity, folder)
    elif corpus is None:
        for warning in check_corpus(recipe, stages=listener.stage):
            listener.on_warning(warning)
    return _announce(setup) if ranks.count > 1 else setup


def _resumed(recipe: PretrainRecipe, folder: Path) -> PretrainRecipe:
    """The run's own recipe; any number of processes can go on with it, each with its threads."""
    saved = read_recipe(folder)
    if recipe.processes == saved.processes:
        return resumed(recipe, folder)
    threads = 0 if recipe.threads == saved.threads else recipe.threads
    same = recipe.changed(processes=saved.processes, threads=saved.threads)
    return resumed(same, folder).changed(processes=recipe.processes, threads=threads)


def follow_preparation(ranks: Ranks, corpus: Corpus | None = None) -> PretrainSetup:
    """Prepare the same in a process beside the first, from what that one has said.

    The run folder is the first one's alone. The corpus must be readable here, too; its tokens are
    in this machine's cache as soon as one of its processes has stored them.
    """
    told = ranks.from_first(dict[str, Any])
    recipe = from_dict(PretrainRecipe, told["recipe"], where="the recipe of process 0")
    torch.set_num_threads(choose_threads(recipe.threads or None))
    ranks.wait_turn()
    data = prepare(recipe, corpus=corpus, tokenizer=_unpacked(*told["tokenizer"]))
    ranks.end_turn()
    objective = find_objective(recipe.objective)(mask_share=recipe.mask_share)
    setup = PretrainSetup(recipe, Path(), told["resume"], data, objective, ranks=ranks)
    if recipe.output != "auto":
        setup = with_output(setup, recipe.output)
    return _joined(setup)


def _announce(setup: PretrainSetup) -> PretrainSetup:
    """Tell the other processes what to prepare, and wait until they have."""
    ranks = setup.ranks
    threads = setup.recipe.threads or max(1, choose_threads() // ranks.local_count)
    torch.set_num_threads(threads)
    recipe = setup.recipe.changed(threads=threads)
    told = {
        "recipe": vars(recipe),
        "resume": setup.resume,
        "tokenizer": _packed(setup.data.tokenizer),
    }
    ranks.from_first(lambda: told)
    ranks.end_turn()
    return _joined(replace(setup, recipe=recipe))


def _joined(setup: PretrainSetup) -> PretrainSetup:
    """Go on once all processes are ready and have read the same."""
    ranks, own = setup.ranks, setup.data.identity
    for rank, identity in enumerate(ranks.gather(own, limit=math.inf)):
        for name, fingerprint in identity.items():
            if own.get(name) != fingerprint:
                raise HeadstartError(
                    f"process {rank} has read another {name} than process {ranks.rank}",
                    fix="give every machine the same files, under the same names",
                )
    ranks.connect(torch.device(setup.recipe.device))
    if setup.recipe.shard:
        from headstart.training.processes.sharded import share_blocks  # takes time to import

        share_blocks(ranks)
    return setup


def _packed(tokenizer: Tokenizer) -> tuple[str, str]:
    """The tokenizer's file: its name and content."""
    with tempfile.TemporaryDirectory() as folder:
        path = tokenizer.save(Path(folder))
        return path.name, base64.b64encode(path.read_bytes()).decode()


def _unpacked(name: str, content: str) -> Tokenizer:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(name).name
        path.write_bytes(base64.b64decode(content))
        return load_tokenizer(path)
