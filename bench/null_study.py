"""Does a study claim a difference where there is none?

Whole studies on generated data whose labels are the toss of a coin, so that nothing can help.
Each repetition has other texts, another corpus and another base. At a level of 95 % one claim in
twenty is to be expected, and more than two would be a fault.

What is counted is the one question about all budgets. A verdict names a single budget only after
that question was answered with yes, and only if the budget passes further tests
(`study/statistics.py`), so what it says of budgets cannot add to the claims counted here.

(Labels told by words that the corpus lacks are no such case: there pretraining costs about ten
points with networks this small, and a study may well say so.) `simulated_studies.py` asks the same
of hundreds of studies whose outcomes are drawn, and of other truths.

    python bench/null_study.py [--repetitions 20] [--rows 600]
"""

import argparse
import random
import tempfile
from pathlib import Path

from headstart.studies.analysis import analyse
from headstart.studies.recipe import make_study_recipe
from headstart.studies.record import write_results
from headstart.studies.results import read_measures, read_predictions, read_study
from headstart.studies.run import StudyRun
from headstart.studies.verdict import verdict

SUBJECTS = ("cat", "dog", "bird", "cook", "judge", "child", "farmer", "queen")
VERBS = ("sees", "finds", "follows", "forgets", "paints", "carries")
SIZES = {"vocab_size": 400, "width": 32, "layers": 2, "heads": 2, "feed_forward_width": 64}


def sentence(generator: random.Random) -> str:
    one, other = generator.choice(SUBJECTS), generator.choice(SUBJECTS)
    return f"the {one} {generator.choice(VERBS)} the {other} ."


def labelled(generator: random.Random) -> tuple[str, str]:
    return f"{sentence(generator)} {sentence(generator)}", generator.choice("ab")


def write_data(folder: Path, rows: int, seed: int) -> None:
    generator = random.Random(seed)
    lines = ["text,label", *(",".join(labelled(generator)) for _ in range(rows))]
    (folder / "data.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    texts = [" ".join(sentence(generator) for _ in range(6)) for _ in range(300)]
    (folder / "corpus.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")


def one_study(folder: Path, rows: int, seed: int) -> tuple[bool, str]:
    write_data(folder, rows, seed)
    recipe = make_study_recipe(
        dataset=[str(folder / "data.csv")],
        corpus=[str(folder / "corpus.txt")],
        arms=["scratch", "counted", "pretrained"],
        labels=["40", "all"],
        epochs=3,
        tokens=20_480,
        threads=1,
        **SIZES,
    )
    study = StudyRun(recipe, folder / "study")
    study.run()
    write_results(study, command="null study")
    told = read_study(study.folder)
    found = analyse(told, read_measures(study.folder), read_predictions(study.folder))
    said = verdict(told, found)
    accuracy = [f"{score.accuracy.value:.0%}" for score in found.scores]
    return said.claims_difference, f"{' '.join(accuracy)}: {said.sentences[0]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--rows", type=int, default=600)
    options = parser.parse_args()
    claims = 0
    for seed in range(options.repetitions):
        with tempfile.TemporaryDirectory() as folder:
            claimed, sentences = one_study(Path(folder), options.rows, seed)
        claims += claimed
        print(f"{seed:>3} {'CLAIM' if claimed else 'none '} {sentences}", flush=True)
    print(f"{claims} of {options.repetitions} studies claim a difference")


if __name__ == "__main__":
    main()
