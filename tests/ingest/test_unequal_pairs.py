"""`--align left-pad` from pairing to database: who is paired with whom, what is stored, forecast and run again."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

import task_files
import tiny_models
from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.ingest import (
    Cuts,
    FileTask,
    LoadedModel,
    Options,
    evaluate_circuits,
    ingest,
    load_model,
    run_faithfulness,
    score_edges,
)
from circuitdb.ingest.forecast import forecast
from circuitdb.ingest.memory import Length, Memory
from circuitdb.ingest.pairs import Pair, Pairing, pair
from circuitdb.ingest.plan import plan
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.ingest.tasks.task import Question
from circuitdb.ingest.tokens import TokenisedQuestion
from circuitdb.records import Example, Subtask
from circuitdb.store import Store
from stores import circuit

TASK = Addition((2,))
PADDED = Options(n_examples=20, shots=0, steps=2, folds=1, align="left-pad")


@pytest.fixture(scope="module")
def teens(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A tiny Llama for which each of 10 to 19 is a token, and every other number as many as it has digits."""
    folder = tmp_path_factory.mktemp("teens") / "tiny"
    return load_model(tiny_models.llama_folder(folder, tiny_models.teens_tokenizer(), seed=2))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "c.duckdb")


def ask(store: Store, sql: str) -> list[tuple[Any, ...]]:
    with reading(store.path) as connection:
        return connection.execute(sql).fetchall()


# --- partners --------------------------------------------------------------------------------------------------------


def question(length: int, answer: str, first: int) -> TokenisedQuestion:
    """A question of that many tokens whose answer begins with the token `first`."""
    return TokenisedQuestion(Question(f"{length} {answer}", answer), "", tuple(range(length)), (first,))


def worth(pairs: list[tuple[TokenisedQuestion, TokenisedQuestion]]) -> tuple[int, int, int, int]:
    """What the pairing has to make small, the first first."""
    gaps = [abs(len(a.ids) - len(b.ids)) for a, b in pairs]
    alike = sum(a.answer_ids == b.answer_ids for a, b in pairs)
    return -len(pairs), sum(gap > 0 for gap in gaps), sum(gaps), alike


def best(questions: list[TokenisedQuestion], compared: int) -> tuple[int, int, int, int]:
    """The least worth of all ways to give each a partner of another answer."""

    def possible(a: TokenisedQuestion, b: TokenisedQuestion) -> bool:
        return a.question.answer != b.question.answer and not (compared and a.answer_ids == b.answer_ids)

    orders = itertools.permutations(questions)
    return min(worth([p for p in zip(questions, order, strict=True) if possible(*p)]) for order in orders)


@pytest.mark.parametrize("compared", [0, 1])
def test_the_pairing_is_the_best_of_all(compared: int) -> None:
    draw, seen = random.Random(0), set()
    for _ in range(60):
        lengths = draw.choices(range(3, 9), k=6)
        questions = [question(n, str(draw.randrange(4)), draw.randrange(3)) for n in lengths]
        found = pair(questions, folds=1, compared=compared, align="left-pad").pairs
        assert len({id(p.corrupted) for p in found}) == len(found)
        assert all(p.clean.question.answer != p.corrupted.question.answer for p in found)
        seen.add(worth([(p.clean, p.corrupted) for p in found]))
        assert worth([(p.clean, p.corrupted) for p in found]) == best(questions, compared)
    assert len(seen) > 20


def test_questions_of_equal_length_have_the_partners_that_they_have_anyhow() -> None:
    draw = random.Random(1)
    questions = [question(5, str(draw.randrange(9)), draw.randrange(4)) for _ in range(30)]
    for compared in (0, 1):
        equal, padded = (pair(questions, folds=3, compared=compared, align=a) for a in ("equal", "left-pad"))
        assert equal == padded


def test_folds_have_no_question_in_common(teens: LoadedModel) -> None:
    found = plan(teens, TASK, TASK.subtasks()[0], replace(PADDED, n_examples=40, folds=3)).pairing.pairs
    texts = [{t for p in found if p.fold == fold for t in (p.clean.text, p.corrupted.text)} for fold in range(3)]
    assert sum(map(len, texts)) == len(set().union(*texts)) == len(found) == 40
    assert any(len(p.clean.ids) != len(p.corrupted.ids) for p in found)


def test_reasons_of_those_without_a_partner() -> None:
    def outcomes(*questions: TokenisedQuestion, compared: int = 1) -> Pairing:
        return pair(questions, folds=1, compared=compared, align="left-pad")

    assert outcomes(question(5, "1", 1)).outcomes == ("its fold has no other question",)
    same = outcomes(question(5, "1", 1), question(6, "1", 1))
    assert same.outcomes == ("every question of its fold has the same answer",) * 2
    alike = outcomes(question(5, "1", 1), question(6, "12", 1))
    assert alike.outcomes == ("every question of its fold has an answer that begins with the same token",) * 2
    longer = outcomes(question(5, "1", 1), question(6, "12", 1), compared=9)
    assert longer.outcomes == ("no question of its fold has an answer that differs in a token",) * 2
    taken = outcomes(question(5, "1", 1), question(6, "1", 1), question(7, "2", 2))
    assert [o for o in taken.outcomes if isinstance(o, str)] == [
        "every question that could be its partner is another one's"
    ]
    assert [(len(p.clean.ids), len(p.corrupted.ids)) for p in taken.pairs] == [(6, 7), (7, 6)]


# --- the plan --------------------------------------------------------------------------------------------------------


def test_the_spec_of_pairs_of_equal_length_is_the_same_and_of_others_not(
    digits_model: LoadedModel, teens: LoadedModel
) -> None:
    equal, padded = (
        plan(digits_model, TASK, TASK.subtasks()[0], replace(PADDED, align=a)) for a in ("equal", "left-pad")
    )
    assert equal.spec == padded.spec
    assert (equal.n_padded, "padding" in equal.spec) == (0, False)
    other = plan(teens, TASK, TASK.subtasks()[0], PADDED)
    assert (other.n_padded > 0, other.spec["padding"]) == (True, "left")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"align": "right"}, r"There is no alignment 'right'; choose one of equal, left-pad\."),
        ({"align": "left-pad", "method": "exact", "ablation": "mean-positional"}, "use --ablation mean, or --align"),
    ],
)
def test_impossible_options(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Options(**given)


@pytest.mark.parametrize("positions", ["answer", "all"])
def test_both_runs_read_the_same_answer(teens: LoadedModel, positions: str) -> None:
    job = plan(teens, TASK, TASK.subtasks()[0], replace(PADDED, positions=positions))
    for run, found in zip(job.sequences, job.pairing.pairs, strict=True):
        n_read = len(run.labels) - 1
        assert run.clean == (*found.clean.ids, *found.clean.line_ids[:n_read])
        assert run.corrupted == (*found.corrupted.ids, *found.clean.line_ids[:n_read])


# --- the database ----------------------------------------------------------------------------------------------------


def alone(model: LoadedModel, found: Pair, **options: Any) -> npt.NDArray[np.float32]:
    """Scores of one pair by the plain function."""
    clean, corrupted = (torch.tensor([side.ids]) for side in (found.clean, found.corrupted))
    return score_edges(model, clean, corrupted, align="left-pad", **options).scores


@pytest.mark.parametrize("n", [20, 40])
def test_what_is_stored(teens: LoadedModel, store: Store, n: int) -> None:
    """Of 40 questions one alone has 8 tokens: it is paired with one of 9, and one of 9 with it."""
    options = replace(PADDED, n_examples=n, by_example=True)
    (outcome,) = ingest(store, teens, TASK, options)
    job = plan(teens, TASK, TASK.subtasks()[0], options)
    assert (outcome.status, outcome.n_examples, outcome.n_skipped) == ("stored", n, 0)
    lengths = ask(store, "SELECT len(clean_ids), len(corrupted_ids) FROM example ORDER BY position")
    gaps = [abs(clean - corrupted) for clean, corrupted in lengths]
    assert (sum(gap > 0 for gap in gaps), sum(gaps)) == (2, 2)
    assert ask(store, "SELECT padding, n_padded FROM circuit") == [("left", 2)]
    assert outcome.n_padded == job.n_padded == 2
    by_pair = [alone(teens, found, steps=2) for found in job.pairing.pairs]
    stored = np.array(ask(store, "SELECT score FROM example_score ORDER BY position, edge_id"), np.float32)
    scale = np.abs(by_pair).max()
    np.testing.assert_allclose(stored.reshape(n, -1), by_pair, rtol=0, atol=1e-5 * scale)
    whole = np.array(ask(store, "SELECT score FROM edge_score ORDER BY edge_id"), np.float32)[:, 0]
    np.testing.assert_allclose(whole, np.mean(by_pair, axis=0), rtol=0, atol=1e-5 * np.abs(whole).max())


def test_circuits_of_pairs_of_equal_length_are_found_again(digits_model: LoadedModel, store: Store) -> None:
    (first,) = ingest(store, digits_model, TASK, replace(PADDED, align="equal"))
    (again,) = ingest(store, digits_model, TASK, PADDED)
    assert (first.status, again.status, again.circuit_id) == ("stored", "kept", 1)
    assert ask(store, "SELECT padding, n_padded FROM circuit") == [("none", 0)]


def pair_by_pair(
    model: LoadedModel, store: Store, options: Options, reference: torch.Tensor | None = None
) -> npt.NDArray[np.float64]:
    """The mean of the stored pairs' scores, each of them scored alone by the plain function."""
    rows = ask(store, "SELECT clean_ids, corrupted_ids, labels FROM example WHERE used ORDER BY position")
    found = [
        score_edges(
            model, torch.tensor([clean]), torch.tensor([corrupted]), method=options.method, steps=options.steps,
            metric=options.metric, ablation=options.ablation, labels=torch.tensor([labels]), scored=len(labels),
            align="left-pad", reference=reference,
        ).scores
        for clean, corrupted, labels in rows
    ]  # fmt: skip
    mean: npt.NDArray[np.float64] = np.stack(found).astype(np.float64).mean(0)
    return mean


def assert_stored(store: Store, expected: npt.NDArray[np.float64]) -> None:
    whole = np.array(ask(store, "SELECT score FROM edge_score ORDER BY edge_id"), np.float32)[:, 0]
    np.testing.assert_allclose(whole, expected, rtol=0, atol=1e-4 * np.abs(whole).max())


@pytest.mark.parametrize(
    "given",
    [
        {"method": "exact", "metric": "logit-difference", "steps": None},
        {"method": "eap", "metric": "nll", "ablation": "zero", "positions": "answer", "steps": None},
        {"method": "eap-ig-activations", "positions": "all"},
        {"method": "clean-corrupted", "metric": "prob-difference", "positions": "answer", "folds": 2, "steps": None},
    ],
    ids=lambda given: given["method"],
)
def test_every_method_ingests(teens: LoadedModel, store: Store, given: dict[str, Any]) -> None:
    options = replace(PADDED, **given, grid=None)
    (outcome,) = ingest(store, teens, TASK, options)
    assert (outcome.status, bool(outcome.n_padded)) == ("stored", True)
    assert_stored(store, pair_by_pair(teens, store, options))


def test_a_mean_is_over_every_token_of_the_corrupted_prompts(teens: LoadedModel, store: Store) -> None:
    """A score of eap is linear in what is put in place: it is the mean of those by each length, weighed by tokens."""
    options = replace(PADDED, method="eap", metric="nll", ablation="mean", steps=None, grid=None)
    (outcome,) = ingest(store, teens, TASK, options)
    assert outcome.n_padded == 2
    references = [ids for (ids,) in ask(store, "SELECT corrupted_ids FROM example WHERE used")]
    total, n_tokens = np.zeros(110), sum(map(len, references))
    for length in sorted({len(ids) for ids in references}):
        chosen = torch.tensor([ids for ids in references if len(ids) == length])
        total += chosen.numel() / n_tokens * pair_by_pair(teens, store, options, chosen)
    assert_stored(store, total)


def test_half_precision_is_close_to_single(golden: Path) -> None:
    draws = torch.Generator().manual_seed(0)
    clean, corrupted = (torch.randint(64, (7, n), generator=draws) for n in (9, 7))
    single, half = (
        score_edges(load_model(golden / "B_gpt2", dtype=dtype), clean, corrupted, align="left-pad").scores
        for dtype in ("float32", "bfloat16")
    )
    assert np.abs(half - single).max() < 0.05 * np.abs(single).max()  # bfloat16 keeps 8 bits: 0.4 % a value


def test_a_file_whose_partners_have_another_length(digits_model: LoadedModel, store: Store, tmp_path: Path) -> None:
    rows = "clean,corrupted,answer,corrupted_answer\n" + "".join(
        f"{a}+1=,{a}+11=,{a + 1},{a + 11}\n" for a in range(1, 7)
    )
    task = FileTask(task_files.write(tmp_path, "sums.csv", rows))
    (refused,) = ingest(store, digits_model, task, replace(PADDED, align="equal"))
    assert (refused.status, "tokens and its corrupted one" in str(refused.reason)) == ("failed", True)
    (outcome,) = ingest(store, digits_model, task, PADDED)
    assert (outcome.status, outcome.n_examples, outcome.n_padded) == ("stored", 6, 6)
    assert ask(store, "SELECT DISTINCT len(corrupted_ids) - len(clean_ids) FROM example") == [(1,)]


# --- before it is done -----------------------------------------------------------------------------------------------


def test_a_forecast_knows_the_longer_prompts(digits_model: LoadedModel, store: Store, tmp_path: Path) -> None:
    rows = "clean,corrupted,answer,corrupted_answer\n1+1=,111111+1=,2,111112\n1+2=,111111+2=,3,111113\n"
    task = FileTask(task_files.write(tmp_path, "sums.csv", rows))
    options = replace(PADDED, n_examples=2)
    (found,) = forecast(store, digits_model, task, options)
    (job,) = (plan(digits_model, task, subtask, options) for subtask in task.subtasks())
    longest = max(len(run.corrupted) for run in job.sequences)
    assert longest == len(job.sequences[0].clean) + 5
    assert (found.n_pairs, found.n_padded, found.n_tokens, found.n_shared) == (2, 2, longest, 0)
    memory = Memory(digits_model, 1).plan(Length(longest), 2, 1, by_example=False)
    assert (found.batch_size, found.memory) == (2, memory.peak)


def test_time_is_shared_out_by_the_tokens_of_both_runs(digits_model: LoadedModel, store: Store, tmp_path: Path) -> None:
    """Per pair the corrupted run once; the clean one, and forward and backward at the one point, four times as much."""
    rows = (
        "clean,corrupted,answer,corrupted_answer,subtask\n"
        "1+1=,22+222=,2,244,short\n1+2=,22+221=,3,243,short\n"
        "22+222=,1+1=,244,2,long\n22+221=,1+2=,243,3,long\n"
    )
    task = FileTask(task_files.write(tmp_path, "sums.csv", rows))
    short, long = forecast(store, digits_model, task, replace(PADDED, n_examples=2))
    assert (short.n_padded, long.n_padded) == (2, 2)
    assert short.seconds
    assert long.seconds
    n_short, n_long = len("1+1= "), len("22+222= ")
    assert long.seconds / short.seconds == pytest.approx((4 * n_long + n_short) / (4 * n_short + n_long))


def test_a_batch_is_as_large_as_the_longer_prompts_allow(
    digits_model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Memory(digits_model, 1)
    room = 2 * 3 * sum(part(Length(9)) for part in (memory.kept, memory.passing))  # a batch may fill half of it
    monkeypatch.setattr("circuitdb.ingest.memory.free_memory", lambda _device: room)
    short, long = torch.randint(1, 15, (8, 4)), torch.randint(1, 15, (8, 9))
    for clean, corrupted in ((short, long), (long, short)):
        assert score_edges(digits_model, clean, corrupted, steps=2, align="left-pad").batch_size == 3
    assert score_edges(digits_model, short, short.flip(0), steps=2).batch_size > 3


# --- run again -------------------------------------------------------------------------------------------------------


def test_circuits_are_run_on_their_pairs_and_on_those_of_others(teens: LoadedModel, store: Store) -> None:
    for seed in (0, 1):
        ingest(store, teens, TASK, replace(PADDED, n_examples=8, seed=seed))
    assert run_faithfulness(store, teens, [1, 2], Cuts((0.0, 0.5, 1.0)), across=True) == 4
    scores = np.array(ask(store, "SELECT score FROM edge_score WHERE circuit_id = 1 ORDER BY edge_id"))[:, 0]
    kept = np.zeros((3, len(scores)), dtype=bool)
    kept[1, np.argsort(-np.abs(scores), kind="stable")[: len(scores) // 2]] = kept[2] = True
    for data in (1, 2):
        rows = ask(store, f"SELECT clean_ids, corrupted_ids FROM example WHERE used AND circuit_id = {data}")
        assert any(len(clean) != len(corrupted) for clean, corrupted in rows)
        expected = np.mean(
            [
                evaluate_circuits(
                    teens, torch.tensor([clean]), torch.tensor([corrupted]), kept, align="left-pad"
                ).values
                for clean, corrupted in rows
            ],
            axis=0,
        )
        found = ask(
            store,
            "SELECT value, faithfulness, clean, corrupted FROM faithfulness "
            f"WHERE circuit_id = 1 AND data_circuit_id = {data} ORDER BY share",
        )
        assert [row[0] for row in found] == pytest.approx(expected.tolist(), rel=1e-4, abs=1e-6)
        assert [found[0][1], found[2][1]] == pytest.approx([0, 1], abs=1e-4)
        assert found[0][2:] == pytest.approx((expected[2], expected[0]), rel=1e-4, abs=1e-6)


def written(model: LoadedModel, ids: list[int], n: int) -> str:
    """The first line that the model writes after a prompt, as text."""
    seen = torch.tensor([ids])
    for _ in range(n):
        with torch.no_grad():
            seen = torch.cat([seen, model.bridge(seen)[:, -1:].argmax(-1)], 1)
    assert model.tokenizer is not None
    return str(model.tokenizer.decode(seen[0, len(ids) :].tolist(), skip_special_tokens=True)).split("\n")[0].strip()


@pytest.mark.parametrize(("n_clean", "n_corrupted"), [(7, 4), (4, 7)])
@pytest.mark.parametrize("right", ["clean", "corrupted"])
def test_circuits_alone_write_answers(
    digits_model: LoadedModel, store: Store, n_clean: int, n_corrupted: int, right: str
) -> None:
    """All edges write what the model writes after the clean prompt, none what it does after the corrupted one.

    Of answers of one character two tokens are written.
    """
    draw, examples = random.Random(0), list[Example]()
    while len(examples) < 3:
        clean, corrupted = ([draw.randrange(1, 11) for _ in range(n)] for n in (n_clean, n_corrupted))
        texts = [written(digits_model, ids, 2)[:1] for ids in (clean, corrupted)]
        if all(texts) and texts[0] != texts[1]:
            # As for the positions of the answer, whose first token both runs read.
            examples.append(
                Example(
                    "x", "y", texts[right == "corrupted"], n_tokens=n_clean, fold=0, clean_ids=[*clean, 3],
                    corrupted_ids=[*corrupted, 3], labels=((3, 5), (4, 5)),
                )
            )  # fmt: skip
    store.write(circuit(of=digits_model.record), np.arange(110, dtype=np.float32), examples=examples)
    readers = {"addition": lambda text: text[:1]}
    assert run_faithfulness(store, digits_model, [1], Cuts((0.0, 1.0), generate=True), readers=readers) == 1
    expected = [(0, 0), (1, 1)] if right == "clean" else [(0, 1), (1, 0)]
    assert ask(store, "SELECT share, accuracy FROM faithfulness ORDER BY share") == expected


class Long:
    """Short questions with long answers, whose given partners are long."""

    name = "long"
    description = "Long."

    def subtasks(self) -> list[Subtask]:
        return [Subtask(self.name, "all")]

    def questions(self, subtask: Subtask, n: int, seed: int) -> list[Question]:
        partner = Question("300 + 400 =", "9")
        return [Question(f"{a} + 2 =", "3333", corrupted=partner) for a in (2, 3)]

    def read_answer(self, text: str) -> str | None:
        return None


def test_a_long_partner_with_a_long_answer_fails_alone_where_it_exceeds_the_context(
    store: Store, tmp_path: Path
) -> None:
    """The partner has 12 tokens with the space before its answer, and reads 3 of the 4 of the clean answer: 15."""
    options = replace(PADDED, n_examples=2, positions="answer")
    statuses = []
    for n_context in (14, 15):
        folder = tiny_models.llama_folder(tmp_path / str(n_context), tiny_models.teens_tokenizer(), n_context=n_context)
        (outcome,) = ingest(store, load_model(folder), Long(), options)
        statuses.append(outcome.status)
        if outcome.reason:
            assert outcome.reason == (
                "long all has a pair of which one prompt takes 15 tokens with the clean answer, more than the 14 of "
                "14's context: make them shorter, or use --align equal."
            )
    assert statuses == ["failed", "stored"]
