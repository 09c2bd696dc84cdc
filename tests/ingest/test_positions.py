"""Scored positions and labels: by hand, through `plan` and `ingest`, and as sums of scores at single positions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import tiny_models
from circuitdb.connection import reading
from circuitdb.errors import ModelError, TaskError, UsageError
from circuitdb.ingest import LoadedModel, Options, ingest, load_model, score_edges
from circuitdb.ingest.jobs import Job
from circuitdb.ingest.pairs import Pair, pair
from circuitdb.ingest.plan import plan
from circuitdb.ingest.sequences import groups, sequences
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.ingest.tasks.task import Question
from circuitdb.ingest.tokens import TokenisedQuestion, tokenise
from circuitdb.store import Store

TASK = Addition((2,))
DIFFERENCE: dict[str, Any] = {"metric": "logit-difference", "n_examples": 12, "shots": 1, "steps": 2, "folds": 1}


END = 9  # of the line


def question(prompt: str, answer: str, ids: tuple[int, ...], answer_ids: tuple[int, ...]) -> TokenisedQuestion:
    return TokenisedQuestion(Question(prompt, answer), prompt, ids, answer_ids, (*answer_ids, END))


# 123 against 14: their first tokens agree, the second differ, and the other has no third.
PAIR = Pair(question("a", "123", (5, 6, 7), (1, 2, 3)), question("b", "14", (5, 8, 7), (1, 4)), 1)


def test_at_the_last_position_of_the_prompt() -> None:
    found = sequences(PAIR, "last")
    assert (found.clean, found.corrupted, found.fold) == ((5, 6, 7), (5, 8, 7), 1)
    assert found.labels == ((1, -1),)


def test_at_the_answers_tokens_both_runs_read_the_clean_answer_but_for_its_last_token() -> None:
    found = sequences(PAIR, "answer")
    assert (found.clean, found.corrupted, found.fold) == ((5, 6, 7, 1, 2), (5, 8, 7, 1, 2), 1)
    assert found.labels == ((1, -1), (2, 4), (3, -1))


def test_at_all_tokens_the_end_of_the_line_is_one_more() -> None:
    found = sequences(PAIR, "all")
    assert (found.clean, found.corrupted) == ((5, 6, 7, 1, 2, 3), (5, 8, 7, 1, 2, 3))
    assert found.labels == ((1, -1), (2, 4), (3, END), (END, -1))


def test_a_token_that_two_answers_share_counts_once() -> None:
    assert sequences(PAIR, "last", [(4, 5), (4, 6), (1, 7), (8,)]).labels == ((1, 4, -1, -1, 8),)
    assert Options(**{**DIFFERENCE, "against": ("3", "4", "3")}).against == ("3", "4")


def test_against_given_answers() -> None:
    others = [(1, 2, 9), (4,)]
    assert sequences(PAIR, "last", others).labels == ((1, -1, 4),)
    assert sequences(PAIR, "answer", others).labels == ((1, -1, 4), (2, -1, -1), (3, 9, -1))


def test_pairs_of_other_numbers_of_scored_positions_are_other_groups() -> None:
    """A prompt of 3 with an answer of 2 is as long as one of 4 with an answer of 1."""
    short = Pair(question("a", "12", (5, 6, 7), (1, 2)), question("b", "34", (5, 8, 7), (3, 4)), 0)
    long = Pair(question("c", "1", (5, 6, 7, 8), (1,)), question("d", "3", (5, 8, 7, 8), (3,)), 0)
    found, places = groups([sequences(p, "answer") for p in (short, long, short)])
    assert [(tuple(g.clean.shape), g.n_scored) for g in found] == [((1, 4), 1), ((2, 4), 2)]
    assert places == [1, 0, 2]


# --- plans -----------------------------------------------------------------------------------------------------------


def planned(model: LoadedModel, **options: Any) -> Job:
    return plan(model, TASK, TASK.subtasks()[0], Options(**{**DIFFERENCE, **options}))


def text(model: LoadedModel, ids: tuple[int, ...]) -> str:
    assert model.tokenizer is not None
    return str(model.tokenizer.decode(list(ids)))


def digit(model: LoadedModel, label: int) -> str:
    return "" if label == -1 else text(model, (label,))


@pytest.mark.parametrize(("positions", "end"), [("answer", ""), ("all", "\n")])
def test_plan_puts_the_answer_behind_both_prompts(digits_model: LoadedModel, positions: str, end: str) -> None:
    job = planned(digits_model, positions=positions)
    assert len(job.sequences) == 12
    for run, found in zip(job.sequences, job.pairing.pairs, strict=True):
        answer, other = found.clean.question.answer + end, found.corrupted.question.answer + end
        assert text(digits_model, run.clean) == found.clean.text + answer[:-1]
        assert text(digits_model, run.corrupted) == found.corrupted.text + answer[:-1]
        assert len(run.clean) == len(run.corrupted)
        rows = [(digit(digits_model, a), digit(digits_model, b)) for a, b in run.labels]
        expected = [(a, b if a != b else "") for a, b in zip(answer, other.ljust(len(answer)), strict=False)]
        assert rows == [(a, b.strip(" ")) for a, b in expected]


def test_plan_at_the_last_position_compares_first_tokens_that_differ(digits_model: LoadedModel) -> None:
    for run, found in zip((job := planned(digits_model)).sequences, job.pairing.pairs, strict=True):
        first, second = found.clean.question.answer[0], found.corrupted.question.answer[0]
        assert first != second
        assert [digit(digits_model, label) for label in run.labels[0]] == [first, second]
        assert len(run.labels) == 1
        assert text(digits_model, run.clean) == found.clean.text


def test_plan_against_given_answers(digits_model: LoadedModel, words_model: LoadedModel) -> None:
    """As they would follow the prompt: a tokenizer of numbers gives each the space before it."""
    for run, found in zip(
        (job := planned(digits_model, against=("9", "41"), positions="answer")).sequences,
        job.pairing.pairs,
        strict=True,
    ):
        answer = found.clean.question.answer
        wanted = [[a, "9" if i == 0 and a != "9" else "", o if a != o else ""]
                  for i, (a, o) in enumerate(zip(answer, "41 "[: len(answer)], strict=True))]  # fmt: skip
        assert [[digit(digits_model, label) for label in row] for row in run.labels] == [
            [part.strip() for part in row] for row in wanted
        ]
    assert words_model.tokenizer is not None
    (first, *_) = planned(words_model, against=("199", "3")).sequences
    assert words_model.tokenizer.convert_ids_to_tokens(list(first.labels[0]))[1:] == [" 199", " 3"]


def test_a_text_that_the_tokenizer_does_not_know_is_refused(tmp_path: Path) -> None:
    tokenizer = tiny_models.digit_tokenizer()
    tokenizer.unk_token = "<end>"
    model = load_model(tiny_models.llama_folder(tmp_path / "tiny", tokenizer))
    assert planned(model, against=("12", "7")).sequences
    with pytest.raises(TaskError, match=r"tiny's tokenizer has no token for a part of '.* = 1x' or of the shots"):
        planned(model, against=("12", "1x"))


def test_an_end_of_line_that_the_tokenizer_does_not_know_is_left_out(tmp_path: Path) -> None:
    """The core of the tokenizer has an unknown token, of which the tokenizer itself tells nothing."""
    vocabulary = {character: i for i, character in enumerate(["<end>", *"0123456789+= "])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<end>"))
    core.pre_tokenizer = pre_tokenizers.Split(Regex("[\\s\\S]"), "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<end>")
    model = load_model(tiny_models.llama_folder(tmp_path / "tiny", tokenizer))
    assert tokenise(model, "", Question("1 + 2 =", "3")).line_ids == (vocabulary["3"],)
    given = Question("1 + 2 = ", "3", gap="", answer_id=vocabulary["3"])
    assert tokenise(model, "", given).line_ids == (vocabulary["3"],)


def test_answers_may_begin_alike_where_later_tokens_count(digits_model: LoadedModel) -> None:
    """Sums of two numbers from 10 to 99 below 100 all begin with few digits: pairs that begin alike are kept."""
    questions = [question(str(i), a, (5, 6, i), tuple(map(int, a))) for i, a in enumerate(["12", "13", "14"])]
    strict = pair(questions, folds=1, compared=1)
    assert (
        strict.outcomes
        == ("every question of its fold and token length has an answer that begins with the same token",) * 3
    )
    assert len(pair(questions, folds=1, compared=10_000).pairs) == 3
    same = [question(str(i), a, (5, 6, i), (1, 2)) for i, a in enumerate(["12", "012"])]
    assert (
        pair(same, folds=1, compared=10_000).outcomes
        == ("no question of its fold and token length has an answer that differs in a token",) * 2
    )


def test_each_choice_is_another_spec_even_of_the_same_tokens(digits_model: LoadedModel) -> None:
    jobs = [planned(digits_model, positions=p) for p in ("last", "answer", "all")]
    assert len({str(job.spec["tokens"]) for job in jobs}) == 3
    assert [job.spec["positions"] for job in jobs] == ["last", "answer", "all"]
    against = [planned(digits_model, against=a) for a in (("9",), ("9", "41"), ())]
    assert [job.spec.get("contrast") for job in against] == ['["9"]', '["9","41"]', None]
    assert len({job.spec_digest for job in (*jobs, *against)}) == 5  # without --against is the default


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positions": "first"}, "There are no positions 'first'; choose one of last, answer, all."),
        ({"metric": "kl", "against": ("9",)}, "The metric kl compares the answer with nothing; leave --against out."),
        ({"metric": "nll", "against": ("9",)}, "The metric nll compares the answer with nothing"),
        ({"against": ("9", " ")}, "must be a list of texts, none of them empty."),
        ({"against": "9"}, "must be a list of texts, none of them empty."),
        ({"against": (9,)}, "must be a list of texts, none of them empty."),
        ({"ablation": "noise"}, "There is no ablation 'noise'"),
        ({"ablation": "zero"}, "eap-ig follows a path to the corrupted run"),
    ],
)
def test_impossible_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Options(**{**DIFFERENCE, **options})


def test_an_answer_like_all_that_it_is_compared_with(digits_model: LoadedModel) -> None:
    """Some sum of two digits begins with a 1."""
    with pytest.raises(TaskError, match=r"has a question whose answer is like every answer of --against in the scored"):
        planned(digits_model, n_examples=40, against=("1",))


def test_the_answer_counts_for_the_context(tmp_path: Path) -> None:
    """Of an answer of three tokens and the end of its line all may be read, which are four too many."""
    folder = tiny_models.llama_folder(tmp_path / "tiny", tiny_models.digit_tokenizer(), n_context=64)
    longest = max(len(q.text) for q in planned(load_model(folder)).questions)
    folder = tiny_models.llama_folder(tmp_path / "short", tiny_models.digit_tokenizer(), n_context=longest)
    model = load_model(folder)
    planned(model)
    with pytest.raises(TaskError, match=rf"has prompts of {longest + 4} tokens, more than the {longest} of"):
        planned(model, positions="answer")


# --- scores ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["logit-difference", "nll"])
def test_scores_over_three_positions_are_the_sum_of_the_three(gqa: LoadedModel, metric: str) -> None:
    """A metric that is a sum over positions, and causal attention: that of each is the score of a shorter prompt."""
    draws = torch.Generator().manual_seed(1)
    clean, corrupted = torch.randint(64, (2, 5, 9), generator=draws)
    corrupted[:, :2] = clean[:, :2] = torch.tensor([1, 2])
    labels = torch.arange(30).reshape(5, 3, 2)
    whole = score_edges(gqa, clean, corrupted, metric=metric, labels=labels, scored=3, steps=3)
    parts = [
        score_edges(
            gqa, clean[:, : 7 + k], corrupted[:, : 7 + k], metric=metric, labels=labels[:, k], steps=3
        )
        for k in range(3)
    ]  # fmt: skip
    total = np.sum([part.scores for part in parts], axis=0)
    np.testing.assert_allclose(whole.scores, total, rtol=0, atol=1e-6 * np.abs(total).max())
    assert whole.metric_clean == pytest.approx(sum(part.metric_clean for part in parts), rel=1e-6)
    assert whole.metric_corrupted == pytest.approx(sum(part.metric_corrupted for part in parts), rel=1e-6)


def test_kl_over_positions_counts_them_all(gqa: LoadedModel) -> None:
    clean, corrupted = torch.arange(18).reshape(2, 9), torch.arange(18).reshape(2, 9) + 20
    found = score_edges(gqa, clean, corrupted, scored=3, steps=2).metric_corrupted
    single = [score_edges(gqa, clean[:, :k], corrupted[:, :k], steps=2).metric_corrupted for k in (7, 8, 9)]
    assert found == pytest.approx(sum(single), rel=1e-6)


@pytest.mark.parametrize(
    ("options", "contrast"),
    [
        ({"positions": "answer"}, "corrupted"),
        ({"positions": "all", "metric": "nll"}, None),
        ({"positions": "answer", "against": ("9", "41")}, '["9","41"]'),
        ({"positions": "last", "metric": "prob-difference", "method": "eap", "steps": None}, "corrupted"),
    ],
)
def test_what_is_stored_is_what_was_run(
    digits_model: LoadedModel, tmp_path: Path, options: dict[str, Any], contrast: str | None
) -> None:
    """The stored token ids and labels give the stored scores again."""
    chosen = Options(**{**DIFFERENCE, **options})
    (outcome,) = ingest(Store(tmp_path / "c.duckdb"), digits_model, TASK, chosen)
    with reading(tmp_path / "c.duckdb") as connection:
        rows = connection.execute(
            "SELECT clean_ids, corrupted_ids, labels, n_tokens, clean, answer FROM example WHERE used ORDER BY position"
        ).fetchall()
        stored = connection.execute("SELECT score FROM edge_score ORDER BY edge_id").fetchnumpy()["score"]
        kept = connection.execute("SELECT positions, contrast, metric_clean FROM circuit").fetchone()
    assert kept is not None
    assert kept[:2] == (chosen.positions, contrast)
    n = len(rows)
    assert outcome.n_examples == n >= 4
    total, clean_metric = np.zeros(stored.size), 0.0
    for clean, corrupted, labels, n_tokens, prompt, answer in rows:
        scored = {"last": 1, "answer": len(answer), "all": len(answer) + 1}[chosen.positions]
        assert len(labels) == scored
        assert len(prompt) == n_tokens == len(clean) - (scored - 1)
        found = score_edges(
            digits_model, torch.tensor([clean]), torch.tensor([corrupted]), method=chosen.method, steps=chosen.steps,
            metric=chosen.metric, labels=torch.tensor([labels]), scored=scored,
        )  # fmt: skip
        total, clean_metric = total + found.scores / n, clean_metric + found.metric_clean / n
    np.testing.assert_allclose(stored, total, rtol=0, atol=2e-6 * np.abs(total).max())
    assert kept[2] == pytest.approx(clean_metric, rel=1e-5)


def test_a_skipped_question_has_the_ids_of_its_prompt_alone(tmp_path: Path) -> None:
    model = load_model(tiny_models.llama_folder(tmp_path / "tiny", tiny_models.teens_tokenizer(), seed=2))
    ingest(Store(tmp_path / "c.duckdb"), model, TASK, Options(n_examples=40, shots=0, steps=2, folds=1))
    with reading(tmp_path / "c.duckdb") as connection:
        rows = connection.execute(
            "SELECT clean, clean_ids, corrupted_ids, labels FROM example WHERE NOT used"
        ).fetchall()
    ((prompt, ids, corrupted, labels),) = rows
    assert text(model, tuple(ids)) == prompt
    assert (corrupted, labels) == (None, None)


# --- tokenizers and tasks --------------------------------------------------------------------------------------------


def test_a_model_without_a_bos_token(digits_model: LoadedModel, tmp_path: Path) -> None:
    assert digits_model.tokenizer is not None
    assert digits_model.tokenizer.bos_token_id is None
    (outcome,) = ingest(Store(tmp_path / "c.duckdb"), digits_model, TASK, Options(n_examples=4, steps=2))
    assert outcome.status == "stored"
    with reading(tmp_path / "c.duckdb") as connection:
        assert connection.execute("SELECT bos FROM circuit").fetchall() == [(False,)]
        (ids,) = connection.execute("SELECT clean_ids FROM example WHERE position = 0").fetchall()[0]
        (prompt,) = connection.execute("SELECT clean FROM example WHERE position = 0").fetchall()[0]
    assert len(ids) == len(prompt)  # a token a character and nothing in front


def with_bos(folder: Path, template: str) -> LoadedModel:
    from tokenizers import processors

    tokenizer = tiny_models.word_tokenizer()
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=template, special_tokens=[("<bos>", tokenizer.bos_token_id), ("<end>", 0)]
    )
    return load_model(tiny_models.llama_folder(folder, tokenizer))


def test_the_tokenizers_own_bos_is_kept_and_its_end_is_not(tmp_path: Path) -> None:
    model = with_bos(tmp_path / "one", "<bos> $A <end>")
    (outcome,) = ingest(Store(tmp_path / "c.duckdb"), model, TASK, Options(n_examples=4, steps=2))
    assert outcome.status == "stored"
    with reading(tmp_path / "c.duckdb") as connection:
        assert connection.execute("SELECT bos FROM circuit").fetchall() == [(True,)]
        rows = connection.execute("SELECT clean_ids, corrupted_ids FROM example").fetchall()
    for ids in (ids for row in rows for ids in row):
        assert ids[0] == 1
        assert ids.count(1) == 1
        assert ids.count(0) == 0


def test_a_tokenizer_that_puts_two_bos_in_front_is_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    model = with_bos(tmp_path / "two", "<bos> <bos> $A")
    with pytest.raises(ModelError, match="The tokenizer puts two BOS tokens in front of a prompt; repair its settings"):
        ingest(Store(tmp_path / "c.duckdb"), model, TASK, Options(n_examples=4, steps=2))
    with reading(tmp_path / "c.duckdb") as connection:
        assert connection.execute("SELECT count(*) FROM circuit").fetchall() == [(0,)]


def test_a_tokenizer_with_more_tokens_than_the_model(tmp_path: Path) -> None:
    """The digits stand at the end of the vocabulary, beyond the sixteen rows of the embedding."""
    folder = tiny_models.llama_folder(tmp_path / "tiny", None)
    tiny_models.word_tokenizer().save_pretrained(folder)
    with pytest.raises(UsageError, match="The clean tokens have ids outside the model's vocabulary of 16"):
        ingest(Store(tmp_path / "c.duckdb"), load_model(folder), TASK, Options(n_examples=4, steps=2))


class Few(Addition):
    """A task with so many questions in its only cell."""

    def __init__(self, n: int) -> None:
        super().__init__((1,))
        object.__setattr__(self, "n", n)

    def questions(self, *_: Any) -> list[Question]:
        n: int = self.n  # type: ignore[attr-defined]
        return [Question(f"{i} + 1 =", str(i + 1)) for i in range(1, n + 1)]


@pytest.mark.parametrize("n", [0, 1])
def test_a_cell_without_a_pair_is_reported_as_failed(digits_model: LoadedModel, tmp_path: Path, n: int) -> None:
    options = Options(n_examples=2, shots=0, folds=1, steps=2)
    (outcome,) = ingest(Store(tmp_path / "c.duckdb"), digits_model, Few(n), options)
    assert outcome.status == "failed"
    assert outcome.reason == (
        f"addition 1+1 has {n} different question{'s' * (n != 1)}; 0 shots and a pair to score need 2: it needs more."
    )


def test_a_task_without_subtasks_is_refused(digits_model: LoadedModel, tmp_path: Path) -> None:
    class Empty(Addition):
        def subtasks(self) -> list[Any]:
            return []

    with pytest.raises(UsageError, match="The task addition has no subtasks"):
        ingest(Store(tmp_path / "c.duckdb"), digits_model, Empty((1,)), Options())


def test_a_pair_that_is_the_same_twice_scores_nothing_among_others(gqa: LoadedModel) -> None:
    """Two of five pairs are equal: their own scores are 0, and the mean is over all five."""
    draws = torch.Generator().manual_seed(1)
    clean, corrupted = torch.randint(64, (2, 5, 9), generator=draws)
    corrupted[1], corrupted[3] = clean[1], clean[3]
    different = torch.tensor([0, 2, 4])
    for method in ("eap-ig", "exact"):
        found = score_edges(gqa, clean, corrupted, method=method, by_example=True)
        others = score_edges(gqa, clean[different], corrupted[different], method=method)
        assert found.by_example is not None
        assert np.abs(found.by_example[[1, 3]]).max() < 1e-12
        np.testing.assert_allclose(found.scores, 3 / 5 * others.scores, rtol=0, atol=1e-6 * np.abs(others.scores).max())
