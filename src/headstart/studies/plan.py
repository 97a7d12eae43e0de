"""The plan of a study: which trainings, how many steps, how long, and what was cut to fit.

Made once, before anything is trained, and kept in `plan.json`, so that a study that is started
again continues with the same one (`plan_file.py`).

Epochs that were not given are usually `EPOCHS`, or as many as `STEPS` steps allow where the labels
are many, but no fewer than `FEWEST_EPOCHS`; whether more of them do better, each network finds out
with the rows of its own budget.

The defaults take about twelve minutes on two cores: the study of the embedded data took 11 minutes
and 11 seconds (research/recipes.md). Amounts are in tokens, not in minutes: the same
command gives the same numbers.
"""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from headstart.config import FinetuneConfig, PretrainConfig
from headstart.data.tokenizers import load_tokenizer
from headstart.errors import HeadstartError
from headstart.machine import choose_threads
from headstart.model.presets import Preset, preset, preset_of
from headstart.run import NetworkRun
from headstart.studies.arms import find_arm
from headstart.studies.arms.arm import BYTES_PER_TOKEN, Amounts, Effort, Speed
from headstart.studies.arms.choosing import SETTINGS
from headstart.studies.data import StudyData
from headstart.studies.executors import find_executor
from headstart.studies.outcomes import RunKey
from headstart.studies.recipe import StudyRecipe, network_kind
from headstart.studies.speed import measure_finetuning, measure_pretraining
from headstart.studies.study_task import take_rows
from headstart.training.initialization import reading_length

EPOCHS, STEPS, FEWEST_EPOCHS = 5, 500, 2
LEAST_PRETRAINING = 0.25  # of the planned steps: less is another question
LEAST_SEEDS = 2  # one seed knows nothing of its own spread
TOKENS = 2_600_000  # of pretraining
MOST_PASSES = 10  # over a corpus that is smaller than that
PREPARING_SECONDS = 1.0  # for each MB of the corpus: tokenizer, store and co-occurrences
REPORT_SECONDS = 15.0


@dataclass(frozen=True)
class StudyPlan:
    """What will be done. Made once and kept, so that a resumed study does the same."""

    seeds: list[int]
    budgets: list[int]
    epochs: dict[int, int]  # of each budget, usually
    pretrain_steps: int  # of each objective; 0 where nothing is pretrained
    jobs: int  # trainings at a time
    threads: int  # of each
    pretrain_threads: int  # it runs alone
    tries: int = SETTINGS  # settings that each network tries
    seconds: float = 0.0
    cuts: list[str] = field(default_factory=list)
    executor: str = "local"  # which `jobs` is for

    def runs(self, recipe: StudyRecipe) -> list[RunKey]:
        """Every training, in the order in which they are started."""
        quick = [arm for arm in recipe.arm_objects if arm.stage < 2]
        others = [arm for arm in recipe.arm_objects if arm.stage >= 2]
        found = [
            RunKey(arm.name, objective, labels, seed)
            for arm in quick
            for labels in self.budgets
            for seed in self.seeds
            for objective in arm.objectives(recipe)
        ]
        # Pairs that are compared run next to each other, so that a busy hour hits both.
        found += [
            RunKey(arm.name, objective, labels, seed)
            for labels in self.budgets
            for seed in self.seeds
            for arm in others
            for objective in arm.objectives(recipe)
        ]
        return found


def make_plan(recipe: StudyRecipe, data: StudyData) -> StudyPlan:
    """Look at the data and the machine, try a few steps, and fit the study into the minutes."""
    chosen = study_preset(recipe)
    pretrain_threads = choose_threads(recipe.threads)
    executor = find_executor(recipe.executor)
    jobs = executor.at_once(recipe, recipe.resources())
    threads = executor.threads(recipe, jobs, pretrain_threads)
    usual = FinetuneConfig.create(dataset=["none"], preset=recipe.preset)
    corpus_bytes = corpus_size(data) if data.corpus is not None else 0
    steps = 0
    if recipe.needs_base and not recipe.base:
        tokens = recipe.tokens or min(TOKENS, round(MOST_PASSES * corpus_bytes / BYTES_PER_TOKEN))
        steps = max(1, tokens // PretrainConfig.batch_tokens)
    pretraining = _pretraining_speed(recipe, pretrain_threads) if steps else {}
    plan = StudyPlan(
        seeds=list(range(recipe.seeds)),
        budgets=data.budgets,
        epochs={n: find_epochs(recipe, n, usual) for n in data.budgets},
        pretrain_steps=steps,
        jobs=jobs,
        threads=threads,
        pretrain_threads=pretrain_threads,
        executor=recipe.executor,
    )
    parts = data.splits.parts().values()
    dataset_bytes = sum(len(text.encode()) for part in parts for text in data.task.texts(part))
    rows = sum(len(part) for part in parts)
    amounts = Amounts(
        text_tokens=2 + dataset_bytes / rows / BYTES_PER_TOKEN,
        dropout_share=dropout_share(recipe, usual, data),
        batch_size=usual.batch_size,
        validation_rows=len(data.splits.validation),
        test_rows=len(data.test),
        corpus_bytes=corpus_bytes,
        train_rows=len(take_rows(data.task, data.splits.train, "all", 0)),
    )
    classes = max(2, len(data.task.labels))
    speed = _measure(recipe, plan, amounts, chosen, pretraining, classes)
    return fit_plan(recipe, plan, speed, amounts)


def dropout_share(recipe: StudyRecipe, usual: FinetuneConfig, data: StudyData) -> float:
    """The share of the training tokens that a step leaves out, as far as the texts' bytes tell."""
    if not data.task.whole_texts:
        return 0.0
    window: float = recipe.length or PretrainConfig.length
    if recipe.base and not recipe.length:
        window = reading_length(NetworkRun.open(Path(recipe.base)), recipe.base)
    if not data.task.supports_windows:
        window = math.inf
    tokens = np.array([len(text.encode()) for text in data.task.texts(data.splits.train)])
    tokens = 2 + tokens / BYTES_PER_TOKEN
    shares = np.where(tokens > window, usual.long_token_dropout, usual.token_dropout or 0.0)
    return float((tokens * shares).sum() / tokens.sum())


def _pretraining_speed(recipe: StudyRecipe, threads: int) -> dict[str, float]:
    """Seconds of a step of each objective."""
    made = PretrainConfig(corpus=["none"], threads=threads, steps=1, precision=recipe.precision)
    return {
        objective: measure_pretraining(
            study_preset(recipe, objective),
            made.replace(objective=objective),
        )
        for objective in recipe.objectives
    }


def _measure(
    recipe: StudyRecipe,
    plan: StudyPlan,
    amounts: Amounts,
    chosen: Preset,
    pretraining: dict[str, float],
    classes: int,
) -> Speed:
    if not recipe.has_networks:
        return Speed(pretraining, 0.0, 0.0)
    trained, read = measure_finetuning(
        chosen,
        classes=classes,
        batch_size=amounts.batch_size,
        length=max(1, min(round(amounts.text_tokens), recipe.length or PretrainConfig.length)),
        threads=plan.threads,
        precision=recipe.precision,
    )
    return Speed(pretraining, trained, read)


def study_preset(recipe: StudyRecipe, objective: str | None = None) -> Preset:
    """The network of the study: the base's, or the preset's for an objective."""
    if recipe.base:
        return preset_of(NetworkRun.open(Path(recipe.base)).model.base.config)
    kind = network_kind(objective or recipe.objectives[0])
    sizes = recipe.sizes()
    if recipe.tokenizer:
        sizes["vocab_size"] = load_tokenizer(Path(recipe.tokenizer)).vocab_size
    return preset(recipe.preset, objective=kind, **sizes)


def find_epochs(recipe: StudyRecipe, labels: int, usual: FinetuneConfig) -> int:
    """The epochs that were given, those of the lab, or what so many labels need."""
    if recipe.epochs or recipe.preset == "lab":
        return recipe.epochs or usual.epochs
    steps = -(-labels // usual.batch_size)
    return min(EPOCHS, max(FEWEST_EPOCHS, STEPS // steps))


def corpus_size(data: StudyData) -> int:
    """Bytes of text, as files tell; else half of what the usual tokens would be."""
    size = None if data.corpus is None else data.corpus.size
    return round(TOKENS * BYTES_PER_TOKEN / 2) if size is None else size


def fit_plan(recipe: StudyRecipe, plan: StudyPlan, speed: Speed, amounts: Amounts) -> StudyPlan:
    """The plan with its time, cut until it fits into the minutes.

    The choice of settings goes first, for all networks alike; then seeds, down to two; then
    pretraining, down to a quarter; then label budgets, from the middle. No training is cut short.
    What does not fit even so is an error that says what would.
    """

    def timed(one: StudyPlan) -> StudyPlan:
        return replace(one, seconds=estimate(recipe, one, speed, amounts))

    plan = wanted = timed(plan)
    if not recipe.minutes or plan.seconds <= 60 * recipe.minutes:
        return plan
    goal = 60 * recipe.minutes
    if recipe.has_networks and recipe.selection == "budget":
        plan = timed(replace(plan, tries=1))
    while plan.seconds > goal and len(plan.seeds) > max(LEAST_SEEDS, recipe.bases):
        plan = timed(replace(plan, seeds=plan.seeds[:-1]))
    while True:
        if plan.seconds > goal and plan.pretrain_steps:
            spent = recipe.bases * sum(speed.pretrain_step.values())
            steps = wanted.pretrain_steps - int((plan.seconds - goal) / spent) - 1
            least = int(LEAST_PRETRAINING * wanted.pretrain_steps)
            plan = timed(replace(plan, pretrain_steps=max(least, steps, 1)))
        if plan.seconds <= goal or len(plan.budgets) == 1:
            break
        # A curve needs its ends; the last one to stay is the cheapest.
        dropped = plan.budgets[1] if len(plan.budgets) > 2 else plan.budgets[-1]
        budgets = [labels for labels in plan.budgets if labels != dropped]
        plan = replace(plan, budgets=budgets, pretrain_steps=wanted.pretrain_steps)
        plan = timed(replace(plan, epochs={labels: plan.epochs[labels] for labels in budgets}))
    if plan.seconds > goal:
        raise HeadstartError(
            f"this study does not fit into {recipe.minutes:g} minutes: with {len(plan.seeds)} "
            f"seeds, {plan.budgets[0]:,} labels and little pretraining it takes about "
            f"{plan.seconds / 60:.0f}, in full {wanted.seconds / 60:.0f}",
            fix=f"give --minutes {math.ceil(1.1 * plan.seconds / 60)} or more, or fewer --arms",
            code="does-not-fit",
        )
    return replace(plan, cuts=_cuts(wanted, plan))


def estimate(recipe: StudyRecipe, plan: StudyPlan, speed: Speed, amounts: Amounts) -> float:
    """Seconds of the whole study: networks `jobs` at a time, the others one after another."""
    networks, others = [0.0], 0.0
    for run in plan.runs(recipe):
        arm = find_arm(run.arm)
        tries = plan.tries if recipe.selection == "budget" else 0
        # With all labels the rows are the same for every seed: settings are chosen once.
        same_rows = run.labels == amounts.train_rows
        effort = Effort(
            plan.epochs[run.labels],
            tries,
            fixed=bool(recipe.epochs),
            chosen=same_rows and run.seed >= recipe.bases,
        )
        repeated = same_rows and not arm.varies_with_seed
        if repeated and run.seed != plan.seeds[0]:
            continue
        seconds = arm.seconds(run.labels, effort, amounts, speed)
        if arm.is_network:
            networks.append(seconds)
        else:
            others += seconds
    trainings = others + max(sum(networks) / plan.jobs, max(networks))
    pretraining = recipe.bases * plan.pretrain_steps * sum(speed.pretrain_step.values())
    preparing = PREPARING_SECONDS * amounts.corpus_bytes / 1e6
    return preparing + pretraining + trainings + REPORT_SECONDS


def _cuts(wanted: StudyPlan, plan: StudyPlan) -> list[str]:
    """What was cut, in words."""
    cuts = []
    if plan.tries != wanted.tries:
        cuts.append("every network takes the usual learning rate and epochs without a choice")
    if plan.seeds != wanted.seeds:
        cuts.append(f"{len(plan.seeds)} seeds instead of {len(wanted.seeds)}")
    if plan.budgets != wanted.budgets:
        dropped = [f"{labels:,}" for labels in wanted.budgets if labels not in plan.budgets]
        cuts.append(f"no trainings with {' and '.join(dropped)} labels")
    if plan.pretrain_steps != wanted.pretrain_steps:
        cuts.append(
            f"{plan.pretrain_steps:,} steps of pretraining instead of {wanted.pretrain_steps:,}"
        )
    return cuts
