"""`--pooling` is used or rejected, never ignored."""

import pytest

from headstart.errors import HeadstartError
from headstart.model.presets import preset
from headstart.tasks.classification import Classification
from headstart.training.finetune import finetune
from tests.labelled import config, splits


@pytest.mark.parametrize("task", ["tagging", "spans"])
def test_tasks_that_score_tokens_reject_it(tmp_path, task):
    with pytest.raises(HeadstartError, match="pooling is for whole texts"):
        finetune(config(task=task, pooling="max"), tmp_path / "run")


def test_classification_uses_it():
    assert Classification(("a", "b")).head(preset("small"), "max").pooling == "max"


@pytest.mark.parametrize(("objective", "used"), [("causal", "last"), ("masked", "mean")])
def test_a_stock_head_with_another_pooling_is_rejected(tmp_path, objective, used):
    settings = config(objective=objective, pooling="max", head="stock", epochs=1)
    with pytest.raises(HeadstartError, match=f"stock head pools with {used}") as error:
        finetune(settings, tmp_path / "run", splits=splits())
    assert "--head stock" in error.value.fix
    assert not (tmp_path / "run" / "model.safetensors").exists()
