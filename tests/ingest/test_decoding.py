"""Greedy decoding, and which answer is the most probable: against whole passes of the model, one prompt at a time."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import tiny_models
from circuitdb.connection import reading
from circuitdb.ingest import FileTask, LoadedModel, Options, ingest, load_model
from circuitdb.ingest.accuracy import Answers, answers, choice_accuracy
from circuitdb.ingest.decoding import line_of, log_probabilities, write
from circuitdb.ingest.forms import Form
from circuitdb.ingest.tasks import registry
from circuitdb.ingest.tasks.task import Question
from circuitdb.store import Store

Ids = tuple[int, ...]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A random Llama whose tokens are words."""
    tokenizer = tiny_models.spaced_tokenizer("True", "False", "not", "and", "or", "is", "(", ")", "a", "b", "c")
    return load_model(tiny_models.llama_folder(tmp_path_factory.mktemp("words") / "tiny", tokenizer), dtype="float64")


@pytest.fixture(scope="module")
def characters(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A random Llama whose tokens are characters."""
    folder = tmp_path_factory.mktemp("characters") / "tiny"
    tokenizer = tiny_models.character_tokenizer()
    return load_model(tiny_models.llama_folder(folder, tokenizer, n_context=512), dtype="float64")


def log_probability(model: LoadedModel, prompt: Ids, answer: Ids) -> float:
    """Token by token, a whole pass each."""
    total, ids = 0.0, prompt
    for token in answer:
        with torch.no_grad():
            total += float(model.bridge(torch.tensor([ids]))[0, -1].log_softmax(-1)[token])
        ids = (*ids, token)
    return total


def test_written_tokens_and_first_log_probabilities(words: LoadedModel) -> None:
    prompts: list[Ids] = [(3, 4, 5), (3, 4, 6), (7, 8), (3, 5, 5, 9)]
    asked: list[Ids] = [(4, 5), (9,), (), (2, 3, 4)]
    for prompt, seen, (text, ids, found) in zip(prompts, asked, write(words, prompts, 6, asked=asked), strict=True):
        expected = prompt
        for _ in range(6):
            with torch.no_grad():
                expected = (*expected, int(words.bridge(torch.tensor([expected]))[0, -1].argmax()))
            if expected[-1] == 0:  # the end of the text
                break
        assert ids == expected[len(prompt) :]
        assert words.tokenizer is not None
        assert text == words.tokenizer.decode(list(ids), skip_special_tokens=True)
        assert found == pytest.approx([log_probability(words, prompt, (token,)) for token in seen], abs=1e-12)


def test_each_prompt_has_as_many_tokens_as_it_is_given(words: LoadedModel) -> None:
    both = write(words, [(3, 4, 5), (3, 4, 6)], [1, 4])
    alone = [write(words, [prompt], n)[0] for prompt, n in (((3, 4, 5), 1), ((3, 4, 6), 4))]
    assert both == alone
    assert len(both[0][1]) == 1


def test_a_prompt_as_long_as_the_context(tmp_path: Path) -> None:
    """Where positions are learned there are no more of them: one token can be written, and no answer of two chosen."""
    tokenizer = tiny_models.digit_tokenizer()
    config = GPT2Config(vocab_size=len(tokenizer), n_positions=5, n_embd=32, n_layer=2, n_head=4)
    GPT2LMHeadModel(config).save_pretrained(tmp_path / "short")
    tokenizer.save_pretrained(tmp_path / "short")
    model = load_model(tmp_path / "short")
    (_, whole, _), (_, less, _) = write(model, [(1, 2, 3, 4, 5), (1, 2, 3)], 9)
    assert 0 in whole or len(whole) == 1
    assert 0 in less or len(less) == 3
    long, short = Question("1+2+", "345", "", choices=("345", "3")), Question("1+2+", "3", "", choices=("3", "4"))
    assert chosen(model, [long, short]).chosen == (None, chosen(model, [short]).chosen[0])
    assert chosen(model, [short]).chosen[0] is not None


def test_decoding_ends_where_all_are_done(tmp_path: Path) -> None:
    tokenizer = tiny_models.spaced_tokenizer("a", "b", "c")
    model = load_model(tiny_models.chain_folder(tmp_path / "chain", tokenizer, {" a": " b", " b": " c", " c": " b"}))
    a, b, c = (int(tokenizer(f" {word}")["input_ids"][0]) for word in "abc")
    sizes: list[int] = []
    handle = model.bridge.embed.register_forward_hook(lambda _module, _args, output: sizes.append(output.shape[1]))
    try:
        found = write(model, [(a,), (b,)], 50, done=lambda text: "c" in text)
    finally:
        handle.remove()
    assert [ids for _, ids, _ in found] == [(b, c), (c, b)]
    assert len(sizes) == 2


def test_log_probabilities(characters: LoadedModel) -> None:
    texts: list[Ids] = [(5, 6, 7, 8), (5, 6, 7, 9), (4, 3), (5, 6, 7, 8)]
    found = log_probabilities(characters, texts, [2, 2, 1, 3])
    wanted = [log_probability(characters, t[:-n], t[-n:]) for t, n in zip(texts, [2, 2, 1, 3], strict=True)]
    assert found == pytest.approx(wanted, abs=1e-12)


def test_the_line_of_tokens(characters: LoadedModel) -> None:
    assert characters.tokenizer is not None
    ids = tuple(characters.tokenizer("ab\nc\n")["input_ids"])
    assert line_of(characters, ids) == ids[:3]
    assert line_of(characters, ids[:2]) == ids[:2]


def chosen(model: LoadedModel, questions: list[Question]) -> Answers:
    form = Form(model)
    return answers(form, [()] * len(questions), [form.ask((), question) for question in questions])


@pytest.mark.parametrize("model", ["words", "characters"])
def test_the_right_answer_is_chosen_where_it_is_the_most_probable(model: str, request: pytest.FixtureRequest) -> None:
    """One token each to the model of words, of different lengths and many to that of characters."""
    loaded: LoadedModel = request.getfixturevalue(model)
    task = registry.find("boolean", {"operators": "not,and", "length": "4-7", "parentheses": "no"})
    questions = [q for subtask in task.subtasks() for q in task.questions(subtask, 12, 0)]
    found = chosen(loaded, questions)
    expected = []
    for question in questions:
        values = {}
        for answer in ("True", "False"):
            asked = Form(loaded).ask((), replace(question, answer=answer))
            values[answer] = log_probability(loaded, asked.ids, asked.answer_ids)
        expected.append(max(values, key=lambda answer: values[answer]) == question.answer)
    assert list(found.chosen) == expected
    assert 0 < sum(expected) < len(expected)


def test_one_token_each_takes_no_further_pass(words: LoadedModel) -> None:
    task = registry.find("boolean", {"operators": "not,and", "length": "5", "parentheses": "no"})
    questions = task.questions(task.subtasks()[0], 8, 0)
    counts = []
    for asked in (questions, [replace(question, choices=()) for question in questions]):
        sizes: list[int] = []
        handle = words.bridge.embed.register_forward_hook(lambda _m, _a, output, sizes=sizes: sizes.append(len(output)))
        found = chosen(words, asked)
        handle.remove()
        counts.append(len(sizes))
    assert counts[0] == counts[1]
    assert found.chosen == (None,) * len(questions)


def test_an_answer_that_begins_another_ends_with_its_line(characters: LoadedModel) -> None:
    for one, other in (("a", "ab"), ("ab", "a"), ("ba", "b")):
        question = Question("x:", one, choices=(one, other))
        asked = [Form(characters).ask((), replace(question, answer=answer)) for answer in (one, other)]
        values = [log_probability(characters, each.ids, each.line_ids) for each in asked]
        assert chosen(characters, [question]).chosen == (values[0] > values[1],)


def test_without_a_right_and_a_wrong_answer_there_is_nothing_to_choose(words: LoadedModel) -> None:
    questions = [
        Question("a is", "True", choices=("False", "not")),
        Question("a is", "True", choices=("True",)),
        Question("a is", "True", also_right=("False",), choices=("True", "False")),
        Question("a is", "True"),
    ]
    assert chosen(words, questions).chosen == (None,) * 4


def test_any_of_several_right_answers_counts(words: LoadedModel) -> None:
    asked = [Form(words).ask((), Question("a is", answer)) for answer in ("a", "b", "c")]
    values = [log_probability(words, each.ids, each.answer_ids) for each in asked]
    question = Question("a is", "a", also_right=("b",), choices=("a", "b", "c"))
    assert chosen(words, [question]).chosen == (max(values[:2]) > values[2],)
    other = replace(question, answer="c", also_right=("b",))
    assert chosen(words, [other]).chosen == (max(values[1:]) > values[0],)


def test_share_and_its_error() -> None:
    found = choice_accuracy([True, None, False, True, True])
    assert found is not None
    assert (found.value, found.n, found.metric, found.filter) == (0.75, 4, "choice-accuracy", "log-probability")
    assert found.stderr == pytest.approx(math.sqrt(0.75 * 0.25 / 4))
    assert choice_accuracy([None, None]) is None
    whole = choice_accuracy([True, True])
    assert whole is not None
    assert (whole.value, whole.stderr) == (1.0, None)


def test_both_accuracies_are_stored(words: LoadedModel, characters: LoadedModel, tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    boolean = registry.find("boolean", {"operators": "not,and", "length": "7", "parentheses": "no"})
    ingest(store, words, boolean, Options(n_examples=8, shots=1, steps=2))
    ingest(store, characters, registry.find("addition", {"digits": "1"}), Options(n_examples=8, shots=1, steps=2))
    with reading(store.path) as connection:
        rows = connection.execute(
            "SELECT circuit_id, metric, filter, value, n, source FROM evaluation ORDER BY ALL"
        ).fetchall()
        accuracies = connection.execute("SELECT circuit_id, accuracy FROM circuits ORDER BY 1").fetchall()
    assert [row[:3] for row in rows] == [
        (1, "accuracy", "greedy"), (1, "choice-accuracy", "log-probability"), (2, "accuracy", "greedy")
    ]  # fmt: skip
    assert [(1, rows[0][3]), (2, rows[2][3])] == accuracies
    job_questions = boolean.questions(boolean.subtasks()[0], 9, 0)
    form, shots = Form(words), (job_questions[0],)
    asked = [form.ask(shots, question) for question in job_questions[1:]]
    wanted = answers(form, [shots] * 8, asked).chosen
    assert rows[1][3:] == (sum(map(bool, wanted)) / 8, 8, "circuitdb")


def test_choices_of_files(tmp_path: Path) -> None:
    big = tmp_path / "task.json"
    big.write_text(
        '{"name": "t", "examples": [{"input": "a", "target_scores": {"x": 1, "y ": 0}}, {"input": "b", "target": "z"}]}'
    )
    task = FileTask(big)
    found = {q.prompt: q.choices for q in task.questions(task.subtasks()[0], 2, 0)}
    assert found == {"Q: a\nA:": ("x", "y"), "Q: b\nA:": ()}
    auto = tmp_path / "prompts.json"
    auto.write_text(
        '{"prompts": [{"clean": "a", "corrupt": "b", "answers": [" x", " v"], "wrong_answers": [" y", " w"]},'
        '{"clean": "c", "corrupt": "d", "answers": [" y"], "wrong_answers": [" x"]}]}'
    )
    task = FileTask(auto)
    found = {q.prompt: q.choices for q in task.questions(task.subtasks()[0], 2, 0)}
    assert found == {"a": ("x", "v", "y", "w"), "c": ("y", "x")}
