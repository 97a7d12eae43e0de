"""Two machines lose the network between them: both say so in time, and --resume goes on."""

import random
import re
import time

import pytest

from tests.corpora import write_corpus
from tests.networks import two_machines
from tests.ranks import (
    ROUNDING,
    STEPS,
    final_bytes,
    largest_difference,
    pretrain_words,
    start_ranks,
)

STUCK_SECONDS = 3


@pytest.fixture
def network():
    try:
        machines = two_machines()
        network = machines.__enter__()
    except OSError as error:
        pytest.skip(f"no network namespaces here: {error}")
    yield network
    machines.__exit__(None, None, None)


@pytest.mark.slow
def test_a_lost_network_ends_the_run_with_a_message_on_both_sides(tmp_path, network):
    write_corpus(tmp_path / "corpus.txt")
    metrics = tmp_path / "run" / "metrics.jsonl"

    def start(out, *more):
        words = pretrain_words(tmp_path, tmp_path / out, "--stuck-seconds", STUCK_SECONDS, *more)
        return start_ranks(words, 2, address=network.address, enter=network.enter)

    assert [rank.wait() for rank in start("whole")] == [0, 0]
    assert start_ranks(pretrain_words(tmp_path, tmp_path / "one"), 1)[0].wait() == 0
    assert largest_difference(tmp_path / "whole", tmp_path / "one") < ROUNDING

    generator = random.Random(0)
    ranks = start("run")
    ranks[0].wait_for_lines(metrics, generator.randint(1, STEPS // 2))
    time.sleep(generator.uniform(0, 0.02))  # within a step, which is mostly exchange
    network.cut()
    assert [rank.wait() for rank in ranks] == [2, 2]
    for rank, other in ((0, 1), (1, 0)):
        said = rf"at step \d+, process {other} of 2 .* has not answered for {STUCK_SECONDS} seconds"
        assert re.search(said, ranks[rank].messages)
        assert "--resume" in ranks[rank].messages

    network.mend()
    assert [rank.wait() for rank in start("run", "--resume")] == [0, 0]
    assert final_bytes(tmp_path / "run") == final_bytes(tmp_path / "whole")
