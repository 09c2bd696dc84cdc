"""From a language model to edge scores: load, pair, score, store, and run the circuits that come of it.

from circuitdb.ingest import load_model, score_edges
model = load_model("gpt2")
found = score_edges(model, clean, corrupted)          # token ids [batch, pos]
dict(zip(found.names, found.scores))
"""

from circuitdb.ingest.circuits import CircuitRunner, CircuitValues, evaluate_circuits
from circuitdb.ingest.faithfulness import Cuts, run_faithfulness
from circuitdb.ingest.metrics import register as register_metric
from circuitdb.ingest.models import LoadedModel, load_model
from circuitdb.ingest.plan import Options
from circuitdb.ingest.run import Outcome, ingest
from circuitdb.ingest.scoring import EdgeScores, score_edges
from circuitdb.ingest.tasks.file_task import FileTask
from circuitdb.ingest.tasks.task import Question, Task

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
