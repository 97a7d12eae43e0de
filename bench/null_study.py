"""Measure how often a study claims a difference where there is none.

Complete studies run on generated data with random labels, so that no method can help. Each
repetition has other texts, another corpus and another base. At a level of 95 %, one wrong claim in
twenty studies is expected; more than two would indicate an error in the statistics.

The script counts claims about the mean over all budgets. A verdict makes a claim about a single
budget only if it also makes this one (`study/statistics.py`), so budgets add no wrong claims.

The labels must be random. If they depended on words that the corpus lacks, pretraining would cost
about ten points with networks this small, and a claim that it does so would be correct.
`simulated_studies.py` simulates hundreds of studies without training, also with real differences.

    python bench/null_study.py [--repetitions 20] [--rows 600]
"""

import argparse
import random
import tempfile
from pathlib import Path

from headstart.config import StudyConfig
from headstart.study.analysis import Analysis
from headstart.study.study import run_study
from headstart.study.verdict import verdict

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
    config = StudyConfig.create(
        dataset=[str(folder / "data.csv")],
        corpus=[str(folder / "corpus.txt")],
        arms=["scratch", "cooc-init", "pretrained"],
        labels=["40", "all"],
        epochs=3,
        tokens=20_480,
        threads=1,
        **SIZES,
    )
    results = run_study(config, folder / "study", command="null study")
    found = verdict(Analysis(results))
    accuracy = [f"{results.scores(*run).mean():.0%}" for run in results.runs]
    return bool(found.claims), f"{' '.join(accuracy)}: {found.sentences[0]}"


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
