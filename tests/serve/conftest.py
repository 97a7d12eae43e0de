"""Runs that the tests of the server share."""

import pytest

from tests.serve.served import save_random_run, served


@pytest.fixture(scope="session")
def classifier(tmp_path_factory):
    """The folder of a classifier with random weights."""
    return save_random_run(tmp_path_factory.mktemp("served") / "animals")


@pytest.fixture(scope="module")
def client(classifier):
    """A client of that classifier."""
    with served(classifier) as found:
        yield found
