"""Two machines lose the network between them, wholly or in one direction.

Both say so in time, and --resume goes on.
"""

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
SILENT = f"has not answered for {STUCK_SECONDS} seconds"


@pytest.fixture(scope="module")
def network():
    try:
        machines = two_machines()
        network = machines.__enter__()
    except OSError as error:
        pytest.skip(f"no network namespaces here: {error}")
    yield network
    machines.__exit__(None, None, None)


@pytest.fixture(scope="module")
def start(tmp_path_factory, network):
    """Starts a run of one process on each machine."""
    folder = tmp_path_factory.mktemp("network")
    write_corpus(folder / "corpus.txt")

    def start(out, *more):
        words = pretrain_words(folder, out, *more)
        return start_ranks(words, 2, address=network.address, enter=network.enter)

    return start


@pytest.fixture(scope="module")
def whole(tmp_path_factory, start):
    """A run on two machines that nothing has interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    ends(start(folder / "two"), [0, 0])
    write_corpus(folder / "corpus.txt")
    ends(start_ranks(pretrain_words(folder, folder / "one"), 1), [0])
    assert largest_difference(folder / "two", folder / "one") < ROUNDING
    return folder / "two"


def ends(ranks, codes):
    assert [rank.wait() for rank in ranks] == codes, [rank.messages for rank in ranks]


def lose(network, start, run, *senders):
    """Begin a run and lose what these machines send, or everything; the run's two processes."""
    generator = random.Random(0)
    ranks = start(run, "--stuck-seconds", STUCK_SECONDS)
    ranks[0].wait_for_lines(run / "metrics.jsonl", generator.randint(1, STEPS // 2))
    time.sleep(generator.uniform(0, 0.02))  # within a step, which is mostly exchange
    network.cut(*senders)
    try:
        ends(ranks, [2, 2])
    finally:
        network.mend()
    return ranks


def check_messages(ranks, how):
    for rank, other in ((0, 1), (1, 0)):
        said = ranks[rank].messages
        assert re.search(rf"at step \d+, process {other} of 2 .* {how}", said), said
        assert "--resume" in said


@pytest.mark.slow
def test_a_lost_network_ends_the_run_with_a_message_on_both_sides(tmp_path, network, start, whole):
    check_messages(lose(network, start, tmp_path / "run"), SILENT)
    ends(start(tmp_path / "run", "--resume"), [0, 0])
    assert final_bytes(tmp_path / "run") == final_bytes(whole)


@pytest.mark.slow
@pytest.mark.parametrize("sender", [0, 1])
def test_a_network_that_is_lost_in_one_direction_does_so_too(
    tmp_path, network, start, whole, sender
):
    ranks = lose(network, start, tmp_path / "run", sender)
    # What arrives may tell of the other's end, or that it has given up.
    check_messages(ranks, r"(has not answered for \d seconds|has ended|has waited for process)")
    ends(start(tmp_path / "run", "--resume"), [0, 0])
    assert final_bytes(tmp_path / "run") == final_bytes(whole)
