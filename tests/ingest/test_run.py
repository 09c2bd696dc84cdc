"""Ingest from task to database: stored, kept, replaced, resumed, failed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

import tiny_models
from circuitdb.connection import reading
from circuitdb.errors import ModelError
from circuitdb.ingest import EdgeScores, LoadedModel, load_model, score_edges
from circuitdb.ingest.accuracy import predictions
from circuitdb.ingest.pairs import Pair
from circuitdb.ingest.plan import Options, plan
from circuitdb.ingest.run import Outcome, Silent, ingest
from circuitdb.ingest.scoring import Scorer
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.store import Store

if TYPE_CHECKING:
    import pytest

TASK = Addition((1, 2))
SMALL = Options(n_examples=6, shots=2, steps=2)


def ask(path: Path, sql: str) -> list[tuple[object, ...]]:
    """Rows of a query."""
    with reading(path) as connection:
        return connection.execute(sql).fetchall()


def floats(path: Path, sql: str) -> npt.NDArray[np.float32]:
    """The first column of a query."""
    return np.array([row[0] for row in ask(path, sql)], np.float32)


def score_pairs(model: LoadedModel, pairs: list[Pair]) -> npt.NDArray[np.float32]:
    """Scores of the pairs by the plain function, in two steps."""
    clean, corrupted = (torch.tensor([getattr(p, side).ids for p in pairs]) for side in ("clean", "corrupted"))
    return score_edges(model, clean, corrupted, steps=2).scores


def test_stored_scores_are_those_of_the_plain_function(digits_model: LoadedModel, tmp_path: Path) -> None:
    store = Store(tmp_path / "circuits.duckdb")
    outcomes = ingest(store, digits_model, TASK, SMALL)
    assert [(o.subtask, o.status, o.circuit_id) for o in outcomes] == [
        ("1+1", "stored", 1), ("1+2", "stored", 2), ("2+1", "stored", 3), ("2+2", "stored", 4),
    ]  # fmt: skip
    job = plan(digits_model, TASK, TASK.subtasks()[1], SMALL)
    wanted = score_pairs(digits_model, job.pairing.pairs)
    path, allowed = Path(store.path), 1e-6 * float(np.abs(wanted).max())
    found = floats(path, "SELECT score FROM edge_score WHERE circuit_id = 2 ORDER BY edge_id")
    np.testing.assert_allclose(found, wanted, rtol=0, atol=allowed)
    for fold in (0, 1):
        wanted = score_pairs(digits_model, [p for p in job.pairing.pairs if p.fold == fold])
        found = floats(path, f"SELECT score FROM fold_score WHERE circuit_id = 2 AND fold = {fold} ORDER BY edge_id")
        np.testing.assert_allclose(found, wanted, rtol=0, atol=allowed)


def test_provenance(digits_model: LoadedModel, tmp_path: Path) -> None:
    path = tmp_path / "circuits.duckdb"
    ingest(Store(path), digits_model, Addition((1,)), SMALL)
    assert ask(
        path,
        "SELECT method, steps, grid, metric, positions, ablation, prompt_style, shots, seed, n_examples, n_skipped, "
        "n_folds, metric_clean, bos, padding, dtype, batch_size, n_edges FROM circuit",
    ) == [
        ("eap-ig", 2, "right", "kl", "last", "patching", "few-shot", 2, 0, 6, 0,
         2, 0.0, False, "none", "float32", 6, 110)
    ]  # fmt: skip
    software = ask(path, "SELECT software->>'torch', software->>'transformers' FROM circuit")[0]
    assert software == (torch.__version__, __import__("transformers").__version__)
    header = ask(path, "SELECT DISTINCT regexp_extract(clean, '^(.*\\n.*\\n)', 1) FROM example")
    assert len(header) == 1
    assert ask(path, "SELECT count(*), count(DISTINCT clean), count(prediction) FROM example WHERE used") == [(6, 6, 6)]
    wrong = ask(path, "SELECT count(*) FROM example WHERE clean = corrupted OR answer = corrupted_answer")
    assert wrong == [(0,)]


def test_second_run_does_nothing_and_a_changed_spec_is_a_new_circuit(digits_model: LoadedModel, tmp_path: Path) -> None:
    store = Store(tmp_path / "circuits.duckdb")
    ingest(store, digits_model, TASK, SMALL)
    size = os.path.getsize(store.path)
    again = ingest(store, digits_model, TASK, SMALL)
    assert [(o.status, o.circuit_id) for o in again] == [("kept", 1), ("kept", 2), ("kept", 3), ("kept", 4)]
    assert os.path.getsize(store.path) == size
    other = ingest(store, digits_model, Addition((1,)), Options(n_examples=6, shots=2, steps=3))
    assert [(o.status, o.circuit_id) for o in other] == [("stored", 5)]
    replaced = ingest(store, digits_model, Addition((1,)), SMALL, replace=True)
    assert [(o.status, o.circuit_id) for o in replaced] == [("stored", 6)]
    assert ask(tmp_path / "circuits.duckdb", "SELECT circuit_id FROM circuit ORDER BY 1") == [
        (2,),
        (3,),
        (4,),
        (5,),
        (6,),
    ]


def test_mixed_token_lengths_are_scored_without_padding(tmp_path: Path) -> None:
    tokenizer = tiny_models.teens_tokenizer()
    model = load_model(tiny_models.llama_folder(tmp_path / "tiny", tokenizer, seed=2))
    path, options = tmp_path / "circuits.duckdb", Options(n_examples=40, shots=0, steps=2, folds=1)
    task = Addition((2,))
    (outcome,) = ingest(Store(path), model, task, options)
    texts = [str(row[0]) for row in ask(path, "SELECT clean FROM example")]
    teens = [len(re.findall(r"\b1\d\b", text)) for text in texts]  # one token less for each
    assert [teens.count(n) for n in range(3)] == [32, 7, 1]
    assert (outcome.status, outcome.n_examples, outcome.n_skipped) == ("stored", 39, 1)
    lengths = ask(path, "SELECT n_tokens, count(*) FROM example WHERE used GROUP BY 1 ORDER BY 1")
    assert lengths == [(9, 7), (10, 32)]
    assert ask(path, "SELECT n_tokens, reason FROM example WHERE NOT used") == [
        (8, "no other question of its fold has 8 tokens")
    ]
    pairs = plan(model, task, task.subtasks()[0], options).pairing.pairs
    by_length = []
    for length, n in ((9, 7), (10, 32)):
        chosen = [p for p in pairs if len(p.clean.ids) == length]
        by_length.append(n * score_pairs(model, chosen))
    wanted = (by_length[0] + by_length[1]) / 39
    found = floats(path, "SELECT score FROM edge_score ORDER BY edge_id")
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * float(np.abs(wanted).max()))


def test_what_another_ingest_stores_meanwhile_is_kept(digits_model: LoadedModel, tmp_path: Path) -> None:
    store = Store(tmp_path / "circuits.duckdb")

    class Rival(Silent):
        """Starts another ingest of the same once the first circuit is stored."""

        def finished(self, outcome: Outcome) -> None:
            if outcome.subtask == "1+1":
                ingest(store, digits_model, TASK, SMALL)

    outcomes = ingest(store, digits_model, TASK, SMALL, watcher=Rival())
    assert [o.status for o in outcomes] == ["stored", "kept", "kept", "kept"]
    assert ask(tmp_path / "circuits.duckdb", "SELECT count(*) FROM circuit") == [(4,)]


def test_a_subtask_that_fails_is_reported_and_the_others_go_on(digits_model: LoadedModel, tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []

    class Listener(Silent):
        """Notes what it hears."""

        def finished(self, outcome: Outcome) -> None:
            told.append((outcome.subtask, outcome.status))

    # Nine shots with a three-digit number exceed the context of 128 tokens; those of one digit do not.
    options = Options(n_examples=8, shots=9, steps=2)
    outcomes = ingest(Store(tmp_path / "c.duckdb"), digits_model, Addition((1, 3)), options, watcher=Listener())
    assert told == [("1+1", "stored"), ("1+3", "failed"), ("3+1", "failed"), ("3+3", "failed")]
    assert outcomes[3].reason is not None
    assert "use fewer shots" in outcomes[3].reason


def test_a_failure_in_scoring_is_reported_and_the_others_go_on(
    digits_model: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, calls = Scorer.score, iter(range(9))

    def score(self: Scorer, *arguments: Any) -> EdgeScores:
        if next(calls) == 1:
            raise ModelError("The model's logits are not finite on these prompts; in half precision, try float32.")
        return plain(self, *arguments)

    monkeypatch.setattr(Scorer, "score", score)
    outcomes = ingest(Store(tmp_path / "c.duckdb"), digits_model, TASK, SMALL)
    assert [o.status for o in outcomes] == ["stored", "failed", "stored", "stored"]
    assert outcomes[1].reason == "The model's logits are not finite on these prompts; in half precision, try float32."


def test_a_model_that_gives_nan_stores_nothing_and_says_so(tmp_path: Path) -> None:
    model = load_model(tiny_models.llama_folder(tmp_path / "tiny", tiny_models.digit_tokenizer()))
    ingest(Store(tmp_path / "c.duckdb"), model, Addition((2,)), SMALL)
    model.bridge.ln_final.original_component.weight.data[0] = float("nan")
    (outcome,) = ingest(Store(tmp_path / "c.duckdb"), model, Addition((1,)), SMALL)
    assert (outcome.status, outcome.circuit_id) == ("failed", None)
    assert outcome.reason == "The model's logits are not finite on these prompts; in half precision, try float32."
    assert ask(tmp_path / "c.duckdb", "SELECT count(*) FROM circuit") == [(1,)]


def test_predictions_are_those_of_plain_greedy_decoding(digits_model: LoadedModel) -> None:
    job = plan(digits_model, TASK, TASK.subtasks()[3], SMALL)
    found = predictions(digits_model, job.questions)
    assert digits_model.tokenizer is not None
    for question, text in zip(job.questions, found, strict=True):
        ids = torch.tensor([question.ids])
        n_tokens = 1 + max(len(q.answer_ids) for q in job.questions)
        for _ in range(n_tokens):
            with torch.no_grad():
                ids = torch.cat([ids, digits_model.bridge(ids)[:, -1:].argmax(-1)], dim=1)
        whole = str(digits_model.tokenizer.decode(ids[0, len(question.ids) :].tolist(), skip_special_tokens=True))
        assert text == whole.split("\n")[0].strip()


WORKER = """
import sys, torch
torch.set_num_threads(1)
from circuitdb.ingest import load_model
from circuitdb.ingest.pairs import Pair
from circuitdb.ingest.plan import Options
from circuitdb.ingest.run import Silent, ingest
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.store import Store
class Told(Silent):
    def finished(self, outcome):
        print(outcome.subtask, outcome.status, flush=True)
options = Options(n_examples=6, shots=2, steps=2)
ingest(Store(sys.argv[1]), load_model(sys.argv[2]), Addition((1, 2)), options, watcher=Told())
"""


def test_killed_ingest_goes_on_and_ends_with_the_same_scores(tmp_path: Path) -> None:
    folder = tiny_models.llama_folder(tmp_path / "tiny", tiny_models.digit_tokenizer())
    cut, whole = tmp_path / "cut.duckdb", tmp_path / "whole.duckdb"
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, str(cut), str(folder)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1+1 stored\n"
        process.send_signal(signal.SIGKILL)
    n_before = int(str(ask(cut, "SELECT count(*) FROM circuit")[0][0]))
    assert n_before in (1, 2)
    second = subprocess.run(
        [sys.executable, "-c", WORKER, str(cut), str(folder)], capture_output=True, text=True, check=True
    ).stdout.split("\n")
    assert second[:-1] == [
        f"{s} {'kept' if i < n_before else 'stored'}" for i, s in enumerate(["1+1", "1+2", "2+1", "2+2"])
    ]
    ingest(Store(whole), load_model(folder), TASK, SMALL)
    digests = "SELECT spec_digest, score_digest FROM circuit ORDER BY 1"
    assert ask(cut, digests) == ask(whole, digests)
