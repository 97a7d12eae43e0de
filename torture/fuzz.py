"""Fuzzing until the time is over: `python -m torture.fuzz --minutes 10`, or `make fuzz`.

Each round gives every property some hundred new cases from its own seed. A case that breaks a
promise is shrunk and printed; the other properties go on.
"""

import argparse
import time
import traceback

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from tests.fuzz_properties import OUTCOMES, PROPERTIES

CASES = 100  # of a property, before the next one has its turn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(PROPERTIES))
    given_words = parser.parse_args()
    began = time.monotonic()
    tried = dict.fromkeys(given_words.only, 0)
    broken: dict[str, int] = {}
    number = given_words.seed
    while time.monotonic() - began < 60 * given_words.minutes and len(broken) < len(tried):
        for name in tried:
            if name not in broken and not _round(name, number, tried):
                broken[name] = number
            if time.monotonic() - began > 60 * given_words.minutes:
                break
        number += 1
    for name, count in tried.items():
        print(f"{name.replace('_', ' ')}: {count:,} cases", end="")
        print(f", BROKEN with --seed {broken[name]}" if name in broken else ", all as promised")
    good, told = (sum(n for (_, c), n in OUTCOMES.items() if c == code) for code in (0, 2))
    print(f"{good:,} commands did their work, {told:,} ended with one message")
    print(f"{sum(tried.values()):,} cases in {(time.monotonic() - began) / 60:.1f} minutes")
    return 1 if broken else 0


def _round(name: str, number: int, tried: dict[str, int]) -> bool:
    """Some cases of one property; false if a promise was broken."""

    @seed(number)
    @settings(
        max_examples=CASES,
        database=None,
        deadline=None,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        tried[name] += 1
        PROPERTIES[name](data)

    try:
        holds()
        return True
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        print(f"{name}, seed {number}:")
        traceback.print_exception(error)
        return False


if __name__ == "__main__":
    raise SystemExit(main())
