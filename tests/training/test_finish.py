"""What is found at the end of a run takes no longer than the run is worth."""

from types import SimpleNamespace

from common.typed_json import to_json
from data.style import Style
from tests.models import QUARTET, four_parts
from training.finish import fitted


def test_a_short_run_that_began_with_a_model_finds_how_it_samples_too(monkeypatch):
    budgets = []
    monkeypatch.setattr(
        "training.finish.fit_sampling", lambda _model, _real, budget: budgets.append(budget)
    )
    source = SimpleNamespace(some_pieces=[four_parts(1)])
    windows = {"options": SimpleNamespace(batch_size=4), "context_length": 512}
    data = SimpleNamespace(vocabulary=QUARTET, source=source, **windows)
    content = SimpleNamespace(network=None, style_json=to_json(Style()))
    for name in (None, "base"):
        module = SimpleNamespace(data=data, options=SimpleNamespace(begin_with=name))
        fitted(content, module, steps=50)
    assert budgets == [10_240, 102_400]
