"""Vectors of texts as a scikit-learn transformer."""

import pickle
import re
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest
import skops.io
import torch
from sklearn.base import clone
from sklearn.utils import estimator_checks as checks

from headstart import HeadstartEmbedder
from headstart.data.tokenizers import train_tokenizer
from headstart.errors import HeadstartError
from headstart.model.model import build_model
from headstart.model.pooling import pool
from headstart.model.presets import preset
from headstart.run import NetworkRun
from tests.labelled import dataset
from tests.pages import ROOT

DATA = dataset(40, 4)
TINY = {"width": 16, "layers": 1, "heads": 2, "feed_forward_width": 32}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The folder of a base with random weights."""
    folder = tmp_path_factory.mktemp("base") / "run"
    tokenizer = train_tokenizer(DATA.texts, vocab_size=300)
    chosen = preset("small", vocab_size=tokenizer.vocab_size, **TINY)
    NetworkRun(folder, build_model(chosen.base, chosen.language_modeling), tokenizer).save(folder)
    return folder


@pytest.fixture(scope="module")
def fitted(base):
    return HeadstartEmbedder(base, pooling="mean").fit()


def test_a_vector_is_the_mean_of_the_hidden_states(fitted, base):
    run = NetworkRun.open(base)
    text = DATA.texts[0]
    ids = run.encoding.framed(run.tokenizer.encode_arrays([text])[0])
    with torch.no_grad():
        hidden = run.model.base(torch.from_numpy(ids).unsqueeze(0))
    expected = pool(hidden, None, "mean").numpy()
    np.testing.assert_allclose(fitted.transform([text]), expected, atol=1e-6)
    usual = HeadstartEmbedder(base).fit_transform([text])
    assert (usual.shape, usual.dtype) == ((1, 32), np.float32)


def test_no_texts_are_no_rows_and_empty_ones_are_rejected(fitted):
    before = torch.get_rng_state()
    assert fitted.transform([]).shape == (0, 16)
    assert torch.equal(torch.get_rng_state(), before)  # of everyone
    with pytest.raises(HeadstartError, match="the text is empty"):
        fitted.transform([" "])


def test_features_have_names_and_come_as_a_table(fitted):
    names = fitted.get_feature_names_out()
    assert names[0] == "headstartembedder0"
    table = clone(fitted).set_output(transform="pandas").fit(DATA.texts).transform(DATA.texts[:2])
    assert isinstance(table, pd.DataFrame)
    assert table.columns.tolist() == names.tolist()


def test_a_pickle_gives_the_same_vectors_without_the_run(base, tmp_path):
    shutil.copytree(base, tmp_path / "run")
    (tmp_path / "run" / "config.toml").write_text("length = 8\n")
    fitted = HeadstartEmbedder(tmp_path / "run").fit()
    copy = pickle.loads(pickle.dumps(fitted))
    shutil.rmtree(tmp_path / "run")
    assert copy.length_ == 8
    assert np.array_equal(copy.transform(DATA.texts), fitted.transform(DATA.texts))


def test_skops_needs_to_trust_our_class_alone(base):
    fitted = HeadstartEmbedder(str(base)).fit()
    kept = skops.io.dumps(fitted)
    assert skops.io.get_untrusted_types(data=kept) == ["headstart.estimators.HeadstartEmbedder"]
    copy = skops.io.loads(kept, trusted=["headstart.estimators.HeadstartEmbedder"])
    assert np.array_equal(copy.transform(["a cat"]), fitted.transform(["a cat"]))


def test_a_wrong_parameter_is_rejected_when_fitting(base):
    with pytest.raises(ValueError, match="pooling"):
        HeadstartEmbedder(base, pooling="sum").fit()


def test_scikit_learns_suite_finds_nothing_that_applies_to_text(base):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says which checks need a table of numbers
        checks.check_estimator(HeadstartEmbedder(base))


def test_the_page_s_code_works(base, tmp_path, monkeypatch):
    page = (ROOT / "docs" / "scikit-learn.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "base").symlink_to(base)
    monkeypatch.chdir(tmp_path)
    names = {"texts": DATA.texts, "labels": DATA.labels}
    exec(compile(code, "docs/scikit-learn.md", "exec"), names)
    assert names["probabilities"].shape == (40, 2)
    assert names["accuracy"] > 0.5
