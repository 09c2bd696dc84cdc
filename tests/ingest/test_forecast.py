"""What an ingest would do: pairs, shared tokens, memory, disk and time, before it is done and without doing it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import tiny_models
from circuitdb.errors import ModelError, UsageError
from circuitdb.graph import GraphShape
from circuitdb.ingest import LoadedModel, Options, ingest, load_model
from circuitdb.ingest.forecast import Forecast, forecast, seconds_for
from circuitdb.ingest.plan import plan
from circuitdb.ingest.run import Outcome, Silent
from circuitdb.ingest.sequences import groups
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.store import Store

TASK = Addition((1, 2))
SMALL = Options(n_examples=6, shots=2, steps=2)
N_EDGES = GraphShape(2, 4).n_edges


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "c.duckdb")


def ask(store: Store, model: LoadedModel, options: Options = SMALL, task: Addition = TASK) -> list[Forecast]:
    return forecast(store, model, task, options)


def test_counts_are_those_of_the_plan(digits_model: LoadedModel, store: Store) -> None:
    found = ask(store, digits_model)
    assert [(f.subtask, f.status) for f in found] == [(s, "missing") for s in ("1+1", "1+2", "2+1", "2+2")]
    for forecast_, subtask in zip(found, TASK.subtasks(), strict=True):
        job = plan(digits_model, TASK, subtask, SMALL)
        header = job.questions[0].text.rpartition("\n")[0] + "\n"
        texts = [t for p in job.pairing.pairs for t in (p.clean.text, p.corrupted.text)]
        same = next(i for i, letters in enumerate(zip(*texts, strict=True)) if len(set(letters)) > 1)
        assert same >= len(header)
        assert (forecast_.n_pairs, forecast_.n_skipped) == (6, 0)
        assert (forecast_.n_tokens, forecast_.n_shared) == (len(texts[0]), same)  # a token a character
        assert forecast_.batch_size == 6
        assert forecast_.reason is None


def test_the_longest_prompts_and_what_is_skipped_are_told(tmp_path: Path, store: Store) -> None:
    model = load_model(tiny_models.llama_folder(tmp_path / "tiny", tiny_models.teens_tokenizer(), seed=2))
    options = Options(n_examples=40, shots=0, steps=2, folds=1)
    (found,) = ask(store, model, options, Addition((2,)))
    assert (found.n_pairs, found.n_skipped, found.n_tokens, found.n_shared) == (39, 1, 10, 0)


def test_what_is_stored_costs_nothing_and_what_can_not_be_has_its_reason(
    digits_model: LoadedModel, store: Store
) -> None:
    options = Options(n_examples=8, shots=9, steps=2)
    ingest(store, digits_model, Addition((1,)), options)
    stored, *failed = ask(store, digits_model, options, Addition((1, 3)))
    assert (stored.subtask, stored.status, stored.disk, stored.seconds) == ("1+1", "stored", 0, 0.0)
    assert [(f.subtask, f.status) for f in failed] == [("1+3", "failed"), ("3+1", "failed"), ("3+3", "failed")]
    assert all("use fewer shots" in str(f.reason) for f in failed)
    assert {(f.n_pairs, f.seconds) for f in failed} == {(None, None)}


def test_scores_of_single_examples_are_missing_where_they_were_not_kept(
    digits_model: LoadedModel, store: Store
) -> None:
    ingest(store, digits_model, Addition((1,)), SMALL)
    for by_example, status in ((False, "stored"), (True, "missing")):
        (found,) = ask(store, digits_model, replace(SMALL, by_example=by_example), Addition((1,)))
        assert found.status == status


@pytest.mark.parametrize(
    ("folds", "by_example", "kept"), [(1, False, 2), (3, False, 4), (2, True, 3 + 6)], ids=["one", "three", "examples"]
)
def test_disk_is_the_whole_its_folds_and_the_examples(
    digits_model: LoadedModel, store: Store, folds: int, by_example: bool, kept: int
) -> None:
    (found,) = ask(store, digits_model, replace(SMALL, folds=folds, by_example=by_example), Addition((2,)))
    assert found.n_pairs == 6
    assert found.disk == int(4.3 * kept * N_EDGES)


def test_nothing_is_written(digits_model: LoadedModel, store: Store, tmp_path: Path) -> None:
    ask(store, digits_model)
    assert list(tmp_path.iterdir()) == []
    ingest(store, digits_model, Addition((1,)), SMALL)
    before = Path(store.path).read_bytes()
    ask(store, digits_model)
    assert Path(store.path).read_bytes() == before


@pytest.mark.parametrize("method", ["eap-ig", "eap-ig-activations", "exact"])
def test_time_is_shared_out_by_work(digits_model: LoadedModel, store: Store, method: str) -> None:
    """All is measured once, on the first subtask; two of equal lengths and pairs take as long."""
    steps = None if method == "exact" else SMALL.steps
    grid = None if method == "exact" else SMALL.grid
    found = ask(store, digits_model, replace(SMALL, method=method, steps=steps, grid=grid))
    seconds = [f.seconds for f in found]
    assert all(s is not None and math.isfinite(s) and s > 0 for s in seconds)
    work = [6 * (f.n_tokens - f.n_shared) for f in found if f.n_tokens is not None and f.n_shared is not None]
    first = seconds[0]
    assert first is not None
    assert seconds == pytest.approx([first * w / work[0] for w in work])


def test_memory_is_weights_and_a_batch(digits_model: LoadedModel, store: Store) -> None:
    wide, narrow = (ask(store, digits_model, replace(SMALL, batch_size=n))[0] for n in (None, 2))
    assert (wide.batch_size, narrow.batch_size) == (6, 2)
    assert wide.memory is not None
    assert narrow.memory is not None
    weights = 4 * (digits_model.record.n_parameters or 0)
    sums = 8 * 2 * 11 * 27  # two folds, sources x targets, in float64
    assert (wide.memory - weights - sums) * 2 == (narrow.memory - weights - sums) * 6


def test_a_model_that_breaks_in_the_probe_has_no_time(tmp_path: Path, store: Store) -> None:
    model = load_model(tiny_models.llama_folder(tmp_path / "tiny", tiny_models.digit_tokenizer()))
    ask(store, model)  # the trial passes
    norm = model.bridge.ln_final.original_component.weight
    norm.data[0] = float("nan")
    (found,) = ask(store, model, SMALL, Addition((1,)))
    assert found.status == "missing"
    assert found.seconds is not None
    assert math.isnan(found.seconds)


def test_impossible_questions_are_refused_as_by_ingest(tmp_path: Path, store: Store) -> None:
    plain = load_model(tiny_models.llama_folder(tmp_path / "tiny", None))
    with pytest.raises(ModelError, match="has no tokenizer; a task needs one"):
        ask(store, plain)
    with pytest.raises(UsageError, match="zero by construction"):
        ask(store, plain, Options(steps=1))


# --- the estimate of exact -------------------------------------------------------------------------------------------


class Listener(Silent):
    """Notes what it hears, in order."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.seconds: list[float] = []

    def estimated(self, seconds: float) -> None:
        self.heard.append("estimated")
        self.seconds.append(seconds)

    def progress(self, share: float) -> None:
        self.heard.append("progress")

    def finished(self, outcome: Outcome) -> None:
        self.heard.append(outcome.status)


@pytest.fixture
def listener() -> Listener:
    return Listener()


def test_the_time_of_exact_is_told_once_and_first(digits_model: LoadedModel, store: Store, listener: Listener) -> None:
    options = Options(n_examples=2, shots=0, folds=1, method="exact")
    ingest(store, digits_model, TASK, options, watcher=listener)
    assert listener.heard.count("estimated") == 1
    assert listener.heard[0] == "estimated"
    assert listener.heard[-1] == "stored"
    assert 0 < listener.seconds[0] < 60


def test_nothing_is_told_where_nothing_is_to_be_scored_or_the_method_is_quick(
    digits_model: LoadedModel, store: Store, listener: Listener
) -> None:
    options, task = Options(n_examples=2, shots=0, folds=1, method="exact"), Addition((1,))
    ingest(store, digits_model, task, options)
    ingest(store, digits_model, task, options, watcher=listener)
    ingest(store, digits_model, task, SMALL, watcher=listener)
    assert "estimated" not in listener.heard
    assert listener.heard[0] == "kept"


def test_a_probe_leaves_the_scorer_as_it_was(digits_model: LoadedModel) -> None:
    """It scores a few edges of a few pairs; the scorer still scores all, by fold and by example."""
    options = Options(n_examples=6, shots=0, folds=2, method="exact", by_example=True)
    scorer = options.scorer(digits_model)
    job = plan(digits_model, TASK, TASK.subtasks()[0], options)
    members, _ = groups(job.sequences)
    one, two = seconds_for(scorer, [members, [*members, *members]])
    assert two == pytest.approx(2 * one)
    assert one > 0
    few = scorer.probe(7)
    assert (int(few.edges.sum()), few.n_folds, few.by_example) == (7, 1, False)
    found = scorer.score(members)
    assert found.n_nonfinite == 0
    assert found.folds.shape == (2, N_EDGES)
    assert found.by_example is not None
    assert torch.isfinite(torch.from_numpy(found.by_example)).all()
