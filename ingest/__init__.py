"""From a language model to edge scores: load, pair, score, store.

from circuitdb.ingest import load_model, score_edges
model = load_model("gpt2")
found = score_edges(model, clean, corrupted)          # token ids [batch, pos]
dict(zip(found.names, found.scores))
"""

from circuitdb.ingest.models import LoadedModel, load_model
from circuitdb.ingest.scoring import EdgeScores, score_edges

__all__ = ["EdgeScores", "LoadedModel", "load_model", "score_edges"]
