"""Forests of a few trees: what is tested here does not hang on how sure they are."""

import pytest

from evaluation import classifier


@pytest.fixture(autouse=True)
def small_forests(request, monkeypatch):
    """Lets classifiers have a tenth of their trees, but where they themselves are tested."""
    if request.module.__name__ != "tests.evaluation.test_classifier":
        monkeypatch.setattr(classifier, "TREES", classifier.TREES // 10)
