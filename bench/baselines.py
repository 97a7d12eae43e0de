"""Measure the accuracy and the time of the linear arms.

The first table has the test accuracy on rotten-tomatoes with IMDb's texts as the corpus: mean and
deviation over seeds, which sample the labelled rows; C is selected on validation rows. Then TF-IDF
is timed on longer texts: the lab's French reviews, if `--french` names their folder, and IMDb,
one half for training and one for validation.

    python bench/baselines.py [--seeds 5] [--cache FOLDER] [--french FOLDER]
"""

import time
from pathlib import Path

import numpy as np
from scipy.special import softmax

from headstart.baselines.linear import CooccurrenceClassifier, TfidfClassifier
from headstart.baselines.stack import Stack
from headstart.data.cooccurrence import ppmi_svd, scale_columns
from reviews import Part, byte_level_bpe, encode, halves, read_french, read_reviews, seeds_and_cache

VOCAB_SIZE, WIDTH, BUDGETS = 8_192, 256, (100, 400, 1_600, None)


def rotten_tomatoes(seeds: int, cache: Path) -> None:
    imdb, data = read_reviews()
    tokenizer = byte_level_bpe(imdb.texts, VOCAB_SIZE, cache)
    started = time.perf_counter()
    documents = encode(tokenizer, imdb.texts)
    found = ppmi_svd(documents, vocab_size=VOCAB_SIZE, width=WIDTH)
    vectors = scale_columns(*found, power=1.0)
    print(f"co-occurrence vectors, tokenizing included: {time.perf_counter() - started:.1f} s")
    print(f"{'labels':>8}{'tfidf':>16}{'cooc-lr':>16}{'stack of both':>16}   seconds of each")
    checks = [data.validation, data.test]
    for budget in BUDGETS:
        scores, seconds = [], []
        for seed in range(1 if budget is None else seeds):
            train = data.train.budget(budget, seed=seed)
            predictions, took = [], []
            for arm, texts in (
                (TfidfClassifier(), lambda part: part.texts),
                (CooccurrenceClassifier(vectors), lambda part: encode(tokenizer, part.texts)),
            ):
                started = time.perf_counter()
                validation = (texts(data.validation), data.validation.labels)
                arm.fit(texts(train), train.labels, validation=validation)
                predictions.append([softmax(arm.scores(texts(part)), axis=1) for part in checks])
                took.append(time.perf_counter() - started)
            stack = Stack.fit([arm[0] for arm in predictions], data.validation.labels)
            finals = [arm[1] for arm in predictions]
            finals.append(stack.predict_proba(finals))
            scores.append([(p.argmax(axis=1) == data.test.labels).mean() * 100 for p in finals])
            seconds.append(took)
        table = np.array(scores)
        spread = table.std(axis=0, ddof=1) if len(table) > 1 else np.full(3, np.nan)
        cells = [f"{m:>10.1f} ±{s:4.1f}" for m, s in zip(table.mean(axis=0), spread, strict=True)]
        times = " ".join(f"{s:5.1f}" for s in np.mean(seconds, axis=0))
        print(f"{budget or len(data.train):>8,}{''.join(cells)}   {times}", flush=True)


def tfidf_alone(name: str, train: Part, validation: Part) -> None:
    started = time.perf_counter()
    arm = TfidfClassifier().fit(
        train.texts, train.labels, validation=(validation.texts, validation.labels)
    )
    accuracy = arm.score(validation.texts, validation.labels) * 100
    print(
        f"tfidf on {name}: {len(train):,} rows, validation accuracy {accuracy:.1f}, "
        f"C {arm.C_:g}, {time.perf_counter() - started:.1f} s",
        flush=True,
    )


def main() -> None:
    parser = seeds_and_cache(__doc__.splitlines()[0])
    parser.add_argument("--french", type=Path, help="the folder cls-books-fr")
    options = parser.parse_args()
    rotten_tomatoes(options.seeds, options.cache)
    if options.french is not None:
        tfidf_alone("French books", *read_french(options.french))
    tfidf_alone("IMDb", *halves(read_reviews()[0]))


if __name__ == "__main__":
    main()
