"""The head swap does not change the base, and reports what happened to every part."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.model.config import (
    ClassificationConfig,
    LanguageModelingConfig,
    MaskedNextSentenceConfig,
    SpansConfig,
    TaggingConfig,
)
from headstart.model.model import build_model, swap_head
from headstart.model.presets import preset
from tests.model.networks import KINDS, tiny

HEADS = [
    LanguageModelingConfig(tied=True),
    LanguageModelingConfig(tied=False, bias=True),
    MaskedNextSentenceConfig(),
    ClassificationConfig(classes=3, pooling="last"),
    TaggingConfig(tags=5),
    SpansConfig(),
]


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    old=st.sampled_from([None, *HEADS]),
    new=st.sampled_from(HEADS),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_swap_keeps_the_base_bit_for_bit_and_gives_reasons(kind, old, new, seed):
    model = build_model(tiny(*kind).base.config, old, seed=3)
    before = {name: value.clone() for name, value in model.base.state_dict().items()}
    swapped, rows = swap_head(model, new, seed=seed)
    after = swapped.base.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(row.why for row in rows)


def test_the_new_head_depends_on_its_seed_alone():
    model = tiny("lab", head="language_modeling")
    drawn = [swap_head(model, HEADS[3], seed=seed)[0].head.output.weight for seed in (1, 1, 2)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_the_table_of_the_labs_swap():
    chosen = preset("lab", vocab_size=100)
    model = build_model(chosen.base, chosen.language_modeling)
    swapped, rows = swap_head(model, chosen.classification(2), seed=0)
    assert [(row.part, row.status, row.parameters) for row in rows] == [
        ("embedding", "kept", 20_000),
        ("blocks × 4", "kept", 968_000),
        ("language modeling head", "dropped", 20_100),
        ("classification head", "new", 402),
    ]
    assert sum(p.numel() for p in swapped.parameters()) == 988_402


def test_a_tied_head_drops_nothing_of_the_embedding():
    _, rows = swap_head(tiny("small", head="language_modeling"), HEADS[3], seed=0)
    assert [row.parameters for row in rows if row.status == "dropped"] == [0]
