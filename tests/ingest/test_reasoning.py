"""Chain of thought: what the model is shown, what it writes, what is scored of it, and that it is not written again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tiny_models
from circuitdb.connection import reading
from circuitdb.errors import TaskError, UsageError
from circuitdb.ingest import LoadedModel, Options, ingest, load_model, run_faithfulness, score_edges
from circuitdb.ingest.faithfulness import Cuts
from circuitdb.ingest.forecast import forecast
from circuitdb.ingest.forms import INSTRUCTION, LEAD
from circuitdb.ingest.pairs import Pair
from circuitdb.ingest.plan import plan, prepare
from circuitdb.ingest.reasoning import Draft, reasoning_in
from circuitdb.ingest.tasks import registry
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.ingest.tasks.task import Question
from circuitdb.records import Subtask
from circuitdb.store import Store

TASK = Addition((1,))
SMALL = Options(n_examples=6, shots=1, steps=2, folds=1, chain_of_thought=True, reasoning_tokens=5)
WORDS = (*map(str, range(20)), "+", "=", *INSTRUCTION.split(), *LEAD.split(), "hmm", "yes")
# After the instruction: `hmm`, then the words that lead to the answer, then 9 and the end of the line.
ROUND = {" step.": " hmm", " hmm": " So", " So": " the", " the": " answer", " answer": " is", " is": " 9", " 9": "\n"}


class Sums:
    """Sums below 20 without worked reasoning, so that every question has as many tokens."""

    name = "sums"
    description = "Sums."

    def subtasks(self) -> list[Subtask]:
        return [Subtask(self.name, "all")]

    def questions(self, subtask: Subtask, n: int, seed: int) -> list[Question]:
        return [Question(f"{a} + {b} =", str(a + b)) for a in range(2, 9) for b in (1, 3)][:n]

    def read_answer(self, text: str) -> str | None:
        return text.split()[0] if text.split() else None


def chain(folder: Path, follows: dict[str, str]) -> LoadedModel:
    return load_model(tiny_models.chain_folder(folder / "chain", tiny_models.spaced_tokenizer(*WORDS), follows))


@pytest.fixture(scope="module")
def characters(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A random Llama that writes characters."""
    folder = tmp_path_factory.mktemp("characters") / "tiny"
    return load_model(tiny_models.llama_folder(folder, tiny_models.character_tokenizer(), n_context=512))


def said(model: LoadedModel, ids: tuple[int, ...]) -> str:
    assert model.tokenizer is not None
    return str(model.tokenizer.decode(list(ids)))


def greedy(model: LoadedModel, ids: tuple[int, ...], n: int) -> tuple[int, ...]:
    """What the model writes after a prompt, a whole pass a token."""
    tokens = torch.tensor([ids])
    for _ in range(n):
        with torch.no_grad():
            tokens = torch.cat([tokens, model.bridge(tokens)[:, -1:].argmax(-1)], dim=1)
    return tuple(tokens[0, len(ids) :].tolist())


@contextmanager
def passes(model: LoadedModel) -> Iterator[list[int]]:
    """How many prompts each pass of the model had."""
    sizes: list[int] = []
    handle = model.bridge.embed.register_forward_hook(lambda _module, _args, output: sizes.append(len(output)))
    try:
        yield sizes
    finally:
        handle.remove()


def test_the_model_writes_its_reasoning_and_the_answer_is_scored_after_it(tmp_path: Path) -> None:
    model = chain(tmp_path, ROUND)
    options = replace(SMALL, shots=0, positions="last")
    job = plan(model, Sums(), Sums().subtasks()[0], options)
    assert set(job.reasoning) == {"hmm"}
    for question in job.questions:
        assert question.text == f"{question.question.prompt}\n{INSTRUCTION} hmm {LEAD}"
        assert said(model, question.ids) == question.text
        assert said(model, question.answer_ids) == f" {question.question.answer}"
    assert len(job.sequences) == 6
    for run, found in zip(job.sequences, job.pairing.pairs, strict=True):
        assert (run.clean, run.corrupted) == (found.clean.ids, found.corrupted.ids)
        assert found.clean.question.answer != found.corrupted.question.answer
    answers = job.answers()
    assert set(answers.texts) == {"9"}


def test_at_all_positions_both_runs_read_what_the_model_wrote(tmp_path: Path) -> None:
    model = chain(tmp_path, ROUND)
    job = plan(model, Sums(), Sums().subtasks()[0], replace(SMALL, shots=0, positions="all"))
    assert len(job.sequences) == 6
    for run, found in zip(job.sequences, job.pairing.pairs, strict=True):
        written = f" hmm {LEAD} 9\n"
        for ids, side in ((run.clean, found.clean), (run.corrupted, found.corrupted)):
            assert said(model, ids) == f"{side.question.prompt}\n{INSTRUCTION}{written.removesuffix(chr(10))}"
        assert said(model, tuple(at[0] for at in run.labels)) == written
        assert {at[1:] for at in run.labels} == {(-1,)}
        # It is what the model writes without our help.
        assert greedy(model, found.clean.ids, len(run.labels)) == tuple(at[0] for at in run.labels)
    assert set(job.answers().texts) == {"9"}


@pytest.mark.parametrize(
    ("follows", "reasoning"),
    [
        ({" step.": " hmm", " hmm": " hmm"}, "hmm hmm hmm hmm hmm"),  # five tokens, and it would go on
        ({" step.": " hmm", " hmm": "\n", "\n": " yes"}, "hmm"),  # the end of the line
        ({" step.": "\n", "\n": " yes", " yes": "<end>"}, "yes"),  # an empty line before it is none
        ({" step.": " hmm", " hmm": "<end>", "<end>": " yes"}, "hmm"),  # the end of the text
        ({" step.": " So", " So": " the", " the": " answer", " answer": " is", " is": " yes"}, ""),
    ],
    ids=["tokens", "line", "empty line", "text", "none"],
)
def test_where_reasoning_ends(tmp_path: Path, follows: dict[str, str], reasoning: str) -> None:
    model = chain(tmp_path, follows)
    job = plan(model, Sums(), Sums().subtasks()[0], replace(SMALL, shots=0))
    assert set(job.reasoning) == {reasoning}
    assert {q.text.split(INSTRUCTION)[1] for q in job.questions} == {f" {reasoning} {LEAD}".replace("  ", " ")}


def test_reasoning_in_a_text() -> None:
    assert reasoning_in(f"\n a b. {LEAD} 5\nmore") == "a b."
    assert reasoning_in("a \ufffd") == "a"
    assert reasoning_in("") == ""


def test_shots_are_solved_with_worked_reasoning_and_never_the_scored_question(characters: LoadedModel) -> None:
    job = plan(characters, TASK, TASK.subtasks()[0], replace(SMALL, shots=2, n_examples=79, positions="all"))
    shots = {shot.prompt: shot for shot in job.shots[0]}
    assert len(shots) == 2
    header = "".join(f"{s.prompt}\n{INSTRUCTION} {s.reasoning} {LEAD} {s.answer}\n" for s in job.shots[0])
    for question in job.questions:
        assert question.text == f"{header}{question.question.prompt}\n{INSTRUCTION} "
        assert question.question.prompt not in header


def test_each_has_its_own_reasoning_and_partners_of_another_length_are_skipped(characters: LoadedModel) -> None:
    job = plan(characters, TASK, TASK.subtasks()[0], replace(SMALL, n_examples=24, positions="answer"))
    draft = prepare(characters, TASK, TASK.subtasks()[0], replace(SMALL, n_examples=24, positions="answer"))
    assert isinstance(draft, Draft)
    for begun, whole, text in zip(draft.questions, job.questions, job.reasoning, strict=True):
        written = reasoning_in(said(characters, greedy(characters, begun.ids, 5)).split("<end>")[0])
        assert text == written
        assert whole.text == f"{begun.text}{f'{written} {LEAD}'.lstrip()} "
    assert len(set(job.reasoning)) > 1
    skipped = [outcome for outcome in job.pairing.outcomes if isinstance(outcome, str)]
    assert len({len(question.ids) for question in job.questions}) > 1
    assert all(len(p.clean.ids) == len(p.corrupted.ids) for p in job.pairing.pairs)
    assert len(skipped) + len(job.pairing.pairs) == 24


@pytest.mark.parametrize("positions", ["last", "answer", "all"])
def test_stored_scores_are_those_of_what_is_stored(characters: LoadedModel, tmp_path: Path, positions: str) -> None:
    store = Store(tmp_path / "c.duckdb")
    options = replace(SMALL, n_examples=12, positions=positions)
    (outcome,) = ingest(store, characters, TASK, options)
    assert outcome.status == "stored"
    with reading(store.path) as connection:
        assert connection.execute("SELECT prompt_style, shots, reasoning_tokens, chat FROM circuits").fetchall() == [
            ("chain-of-thought", 1, 5, False)
        ]
        rows = connection.execute(
            "SELECT clean_ids, corrupted_ids, labels, clean, reasoning, n_tokens FROM example WHERE used"
        ).fetchall()
        scores = connection.execute("SELECT score FROM edge_score ORDER BY edge_id").fetchnumpy()["score"]
        n_reasons = connection.execute("SELECT count(*) FROM example WHERE reasoning IS NULL").fetchone()
    assert n_reasons == (0,)
    assert len(rows) == outcome.n_examples
    wanted = np.zeros(len(scores))
    for clean, corrupted, labels, text, reasoning, n_tokens in rows:
        found = score_edges(characters, torch.tensor([clean]), torch.tensor([corrupted]), steps=2, scored=len(labels))
        wanted += found.scores / len(rows)
        assert text.endswith(f"{INSTRUCTION} " if positions == "all" else f"{LEAD} ")
        assert (reasoning in text) or positions == "all"
        assert n_tokens == len(text)
        if positions == "all":
            read = said(characters, tuple(clean[n_tokens:]))
            assert read.startswith(f"{reasoning} {LEAD} ".lstrip())
            assert clean[n_tokens:] == corrupted[n_tokens:] == [at[0] for at in labels[:-1]]
    np.testing.assert_allclose(scores, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())


def test_what_is_stored_is_not_written_again(characters: LoadedModel, tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    first = ingest(store, characters, TASK, SMALL)
    with passes(characters) as sizes:
        again = ingest(store, characters, TASK, SMALL)
        assert [(o.status, o.circuit_id) for o in (*first, *again)] == [("stored", 1), ("kept", 1)]
        (known,) = forecast(store, characters, TASK, SMALL)
        assert (known.status, known.n_pairs, known.seconds) == ("stored", None, 0.0)
    assert sizes == []
    (other,) = ingest(store, characters, TASK, replace(SMALL, reasoning_tokens=6))
    assert (other.status, other.circuit_id) == ("stored", 2)


def test_a_dry_run_counts_the_pairs_that_there_will_be(characters: LoadedModel, tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    (told,) = forecast(store, characters, TASK, SMALL)
    (found,) = ingest(store, characters, TASK, SMALL)
    assert (told.status, told.n_pairs, told.n_skipped) == ("missing", found.n_examples, found.n_skipped)


def test_a_partner_that_the_task_gives_has_its_own_reasoning(characters: LoadedModel) -> None:
    class Given(Sums):
        def questions(self, subtask: Subtask, n: int, seed: int) -> list[Question]:
            found = super().questions(subtask, n, seed)
            return [replace(q, corrupted=Question(q.prompt.replace("+", "-"), "")) for q in found]

    options = replace(SMALL, shots=0, n_examples=8)
    draft = prepare(characters, Given(), Subtask("sums", "all"), options)
    assert isinstance(draft, Draft)
    assert draft.partners is not None
    job = draft.written()
    for outcome, begun in zip(job.pairing.outcomes, draft.partners, strict=True):
        if isinstance(outcome, Pair):
            text = reasoning_in(said(characters, greedy(characters, begun.ids, 5)).split("<end>")[0])
            assert outcome.corrupted.text == f"{outcome.corrupted.question.prompt}\n{INSTRUCTION} {text} {LEAD} "
            assert " - " in outcome.corrupted.text
    assert job.pairing.pairs
    assert any(isinstance(outcome, str) for outcome in job.pairing.outcomes) or len(job.pairing.pairs) == 8


def test_worked_reasoning_is_needed_for_shots(characters: LoadedModel) -> None:
    with pytest.raises(TaskError, match=r"sums all has no worked reasoning for its shots; .* use --shots 0\."):
        plan(characters, Sums(), Subtask("sums", "all"), SMALL)


def test_reasoning_that_does_not_fit_in_the_context(characters: LoadedModel) -> None:
    with pytest.raises(TaskError, match=r"more than the 512 of .*: use fewer shots or fewer --reasoning-tokens\."):
        plan(characters, TASK, TASK.subtasks()[0], replace(SMALL, reasoning_tokens=460))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reasoning_tokens": 0}, "The number of reasoning tokens must be at least 1, not 0."),
        ({"positions": "all", "metric": "logit-difference"}, "logit-difference compares answers"),
        ({"shots_drawn": "per-example"}, "use --positions all with shots per-example"),
        ({"shots_drawn": "anew"}, "Shots are not drawn 'anew'; choose one of fixed, per-example."),
    ],
)
def test_options_that_can_not_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        replace(SMALL, **changes)


def test_generation_by_a_cut_circuit_needs_a_prompt_that_an_answer_follows(
    characters: LoadedModel, tmp_path: Path
) -> None:
    store = Store(tmp_path / "c.duckdb")
    ingest(store, characters, TASK, replace(SMALL, positions="all"))
    ingest(store, characters, TASK, SMALL)
    with pytest.raises(UsageError, match="The prompts of circuit 1 end before its reasoning"):
        run_faithfulness(store, characters, [1], Cuts(shares=(0.5,), generate=True))
    assert run_faithfulness(store, characters, [1], Cuts(shares=(0.5,))) == 1
    assert run_faithfulness(store, characters, [2], Cuts(shares=(1.0,), generate=True)) == 1
    with reading(store.path) as connection:
        whole, model = connection.execute(
            "SELECT f.accuracy, c.accuracy FROM faithfulness AS f JOIN circuits AS c USING (circuit_id) WHERE share = 1"
        ).fetchall()[0]
    assert whole == model


@pytest.mark.parametrize("name", registry.TASKS)
def test_every_task_can_be_asked_so(characters: LoadedModel, name: str) -> None:
    task = registry.find(name, {})
    shots = int(name in ("addition", "arithmetic", "boolean", "sports"))
    options = replace(SMALL, shots=shots, n_examples=4, positions="all")
    draft = prepare(characters, task, task.subtasks()[-1], replace(options, n_examples=40))
    assert isinstance(draft, Draft)
    assert draft.pairing is not None
    assert draft.pairing.pairs
