"""From a language model to edge scores: load, pair, score, store, and run the circuits that come of it.

from circuitdb.ingest import load_model, score_edges
model = load_model("gpt2")
found = score_edges(model, clean, corrupted)          # token ids [batch, pos]
dict(zip(found.names, found.scores))

What is named here is imported when it is first asked for: the tasks alone need no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from circuitdb.ingest.circuits import CircuitRunner, CircuitValues, evaluate_circuits
    from circuitdb.ingest.faithfulness import Cuts, run_faithfulness
    from circuitdb.ingest.metrics import register as register_metric
    from circuitdb.ingest.models import LoadedModel, load_model
    from circuitdb.ingest.plan import Options
    from circuitdb.ingest.run import Outcome, ingest
    from circuitdb.ingest.scoring import EdgeScores, score_edges
    from circuitdb.ingest.tasks.file_task import FileTask
    from circuitdb.ingest.tasks.task import Question, Task

_WHERE = {
    "CircuitRunner": "circuits",
    "CircuitValues": "circuits",
    "Cuts": "faithfulness",
    "EdgeScores": "scoring",
    "FileTask": "tasks.file_task",
    "LoadedModel": "models",
    "Options": "plan",
    "Outcome": "run",
    "Question": "tasks.task",
    "Task": "tasks.task",
    "evaluate_circuits": "circuits",
    "ingest": "run",
    "load_model": "models",
    "register_metric": "metrics",
    "run_faithfulness": "faithfulness",
    "score_edges": "scoring",
}
_CALLED = {"register_metric": "register"}

__all__ = [
    "CircuitRunner",
    "CircuitValues",
    "Cuts",
    "EdgeScores",
    "FileTask",
    "LoadedModel",
    "Options",
    "Outcome",
    "Question",
    "Task",
    "evaluate_circuits",
    "ingest",
    "load_model",
    "register_metric",
    "run_faithfulness",
    "score_edges",
]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_WHERE[name]}"), _CALLED.get(name, name))
    globals()[name] = value  # the next time it is there
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
