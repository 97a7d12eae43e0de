"""The model of many machines (`bench/scale.py`) behaves as time does; its page is up to date."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOKENS = 1_048_576
ALGORITHMS = ("ring", "hierarchical", "halving-doubling")


@pytest.fixture(scope="module")
def model():
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        import scaling.model

        yield scaling.model
    finally:
        sys.path.remove(str(ROOT / "bench"))


@pytest.fixture(scope="module")
def pieces(model):
    from scaling.pieces import read_pieces

    return read_pieces()[0]


@pytest.fixture(params=ALGORITHMS)
def cluster(model, request):
    return model.Cluster(16, model.Network(10, 20), algorithm=request.param)


def test_one_machine_has_an_efficiency_of_one_and_more_never_a_higher_one(model, pieces, cluster):
    shares = [
        model.efficiency(pieces, replace(cluster, machines=count), TOKENS)
        for count in (1, 2, 10, 100, 1_000)
    ]
    assert shares[0] == 1
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] > 0


def test_a_faster_network_never_hurts(model, pieces, cluster):
    networks = [model.Network(g, 50) for g in (0.1, 1, 10, 100)] + [model.Network(100, 5)]
    speeds = [
        model.tokens_per_second(pieces, replace(cluster, network=network), TOKENS)
        for network in networks
    ]
    assert speeds == sorted(speeds)
    assert speeds[0] < speeds[-1]


def test_larger_steps_never_lower_the_efficiency(model, pieces, cluster):
    shares = [model.efficiency(pieces, cluster, tokens) for tokens in (1 << 13, 1 << 17, 1 << 20)]
    assert shares == sorted(shares)


def test_a_step_with_fewer_rows_than_processes_is_not_possible(model, pieces, cluster):
    rows = int(pieces.row_tokens) * cluster.processes
    assert model.step(pieces, cluster, rows) is not None
    assert model.step(pieces, cluster, rows - 1) is None
    assert model.efficiency(pieces, cluster, rows - 1) == 0


def test_every_algorithm_sends_as_many_bytes_as_the_ring(model, pieces, cluster):
    free = replace(pieces, message_seconds=0.0)
    two = replace(cluster, machines=2, cores=1, network=model.Network(1, 0))
    seconds = 1e9 / two.network.bytes_per_second  # each sends half, then half of the sum
    assert model.all_reduce(free, two, 1e9) == pytest.approx(seconds)


def test_overlapping_helps_and_hides_no_more_than_there_is(model, pieces, cluster):
    plain, hidden = (
        model.step(pieces, replace(cluster, overlap=overlap), TOKENS) for overlap in (False, True)
    )
    assert 0 <= hidden.exchange <= plain.exchange


def test_more_processes_wait_longer_for_the_slowest(model):
    waits = [model.slowest_of(count) for count in (1, 2, 10, 1_000)]
    assert waits[0] == 0
    assert waits == sorted(waits)


def test_no_other_time_between_checkpoints_keeps_more_than_the_best(model, pieces):
    best = model.checkpoint_every(pieces, 1_000, 6_300)
    kept = [
        model.time_kept(pieces, 1_000, 6_300, every=best * factor, noticed=5)
        for factor in (0.25, 0.9, 1, 1.1, 4)
    ]
    assert max(kept) == kept[2]
    assert all(0 <= one <= 1 for one in kept)


def test_the_page_shows_the_tables_of_the_bench(model):
    import scale

    tables = scale.all_tables(model.Cluster(1, scale.USUAL))
    page = scale.PAGE.read_text(encoding="utf-8")
    assert f"{scale.BEGIN}\n{tables}\n{scale.END}" in page, "run: python bench/scale.py --write"
