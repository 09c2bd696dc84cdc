"""How a question is put: as text, through a chat template, with BOS once and the boundary before the answer."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import tiny_models
from circuitdb.connection import reading
from circuitdb.errors import ModelError
from circuitdb.ingest import LoadedModel, Options, ingest, load_model
from circuitdb.ingest.chat import Chat, chat
from circuitdb.ingest.forms import INSTRUCTION, LEAD, Form
from circuitdb.ingest.plan import plan
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.ingest.tasks.task import Question
from circuitdb.ingest.tokens import starts_with_bos
from circuitdb.records import Json, digest
from circuitdb.store import Store

TASK = Addition((1,))
SMALL = Options(n_examples=6, shots=1, steps=2, folds=1)
SHOT = Question("1 + 2 =", "3", reasoning="1 + 2 = 3.")
ASKED = Question("4 + 4 =", "8")
STEP = f"\n{INSTRUCTION}"


@pytest.fixture(scope="module")
def talking(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A tiny Llama with a chat template and a BOS token."""
    folder = tmp_path_factory.mktemp("talking") / "tiny"
    return load_model(tiny_models.llama_folder(folder, tiny_models.chat_tokenizer(), n_context=512))


def said(model: LoadedModel, ids: tuple[int, ...]) -> str:
    assert model.tokenizer is not None
    return str(model.tokenizer.decode(list(ids)))


@pytest.mark.parametrize(
    ("shots", "thought", "reasoning", "text"),
    [
        ((), False, "", "4 + 4 = "),
        ((SHOT,), False, "", "1 + 2 = 3\n4 + 4 = "),
        ((), True, "", f"4 + 4 ={STEP} {LEAD} "),
        ((), True, "easy.", f"4 + 4 ={STEP} easy. {LEAD} "),
        ((SHOT,), True, "easy.", f"1 + 2 ={STEP} 1 + 2 = 3. {LEAD} 3\n4 + 4 ={STEP} easy. {LEAD} "),
    ],
)
def test_plain_text(
    talking: LoadedModel, shots: tuple[Question, ...], thought: bool, reasoning: str, text: str
) -> None:
    found = Form(talking, thought).ask(shots, ASKED, reasoning)
    assert found.text == text
    assert said(talking, found.ids) == f"<bos>{text}"
    assert (said(talking, found.answer_ids), said(talking, found.line_ids)) == ("8", "8\n")
    assert found.question is ASKED
    assert starts_with_bos(talking, found.ids)


@pytest.mark.parametrize(
    ("shots", "thought", "reasoning", "text"),
    [
        ((), False, "", "[user]4 + 4 =<end>[assistant]"),
        ((SHOT,), False, "", "[user]1 + 2 =<end>[assistant]3<end>[user]4 + 4 =<end>[assistant]"),
        ((), True, "easy.", f"[user]4 + 4 ={STEP}<end>[assistant]easy. {LEAD} "),
        ((), True, "", f"[user]4 + 4 ={STEP}<end>[assistant]{LEAD} "),
        (
            (SHOT,), True, "easy.",
            f"[user]1 + 2 ={STEP}<end>[assistant]1 + 2 = 3. {LEAD} 3<end>"
            f"[user]4 + 4 ={STEP}<end>[assistant]easy. {LEAD} ",
        ),
    ],
)  # fmt: skip
def test_through_a_chat_template(
    talking: LoadedModel, shots: tuple[Question, ...], thought: bool, reasoning: str, text: str
) -> None:
    """BOS stands there once, from the template; an answer ends with the assistant's turn, and begins at a boundary."""
    found = Form(talking, thought, chat(talking)).ask(shots, ASKED, reasoning)
    assert said(talking, found.ids) == found.text == f"<bos>{text}"
    assert found.ids.count(1) == 1
    assert (said(talking, found.answer_ids), said(talking, found.line_ids)) == ("8", "8<end>")


def test_an_open_prompt_is_the_beginning_of_the_whole_one(talking: LoadedModel) -> None:
    for form in (Form(talking, True), Form(talking, True, chat(talking))):
        begun, whole = form.open((SHOT,), ASKED), form.ask((SHOT,), ASKED, "easy.")
        assert whole.ids[: len(begun.ids)] == begun.ids
        assert whole.text.removeprefix(begun.text) == f"easy. {LEAD} "
        assert begun.answer_ids == whole.answer_ids


def test_a_partner_without_an_answer_ends_where_it_would_before_the_questions_own(talking: LoadedModel) -> None:
    asked = replace(ASKED, corrupted=Question("4 + 5 =", ""))
    for form in (Form(talking), Form(talking, False, chat(talking))):
        found = form.ask_partner((), asked)
        assert found is not None
        assert (found.text, found.answer_ids, found.line_ids) == (
            form.ask((), ASKED).text.replace("4 =", "5 ="),
            (),
            (),
        )
        assert form.ask_partner((), ASKED) is None
    known = Form(talking).ask_partner((), replace(ASKED, corrupted=Question("4 + 5 =", "9")))
    assert known is not None
    assert said(talking, known.line_ids) == "9\n"


def test_day_and_thinking_of_a_template_are_fixed(talking: LoadedModel, tmp_path: Path) -> None:
    tokenizer = tiny_models.chat_tokenizer()
    tokenizer.chat_template = (
        "{{ strftime_now('%Y-%m-%d') }} {{ date_string }} {% if enable_thinking %}thinks{% endif %}"
        "{% for message in messages %}[{{ message['content'] }}]{% endfor %}"
    )
    model = load_model(tiny_models.llama_folder(tmp_path / "dated", tokenizer))
    assert chat(model).prompt([], "a") == "01 Jan 2025 01 Jan 2025 [a]"


def test_a_model_without_a_template_is_refused(words_model: LoadedModel, gqa: LoadedModel, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"The tokenizer of tiny has no chat template, .*; leave --chat out\."):
        ingest(Store(tmp_path / "c.duckdb"), words_model, TASK, replace(SMALL, chat=True))
    with pytest.raises(ModelError, match=r"has no tokenizer, so it has no chat template; leave --chat out\."):
        chat(gqa)


def test_a_template_that_can_not_take_the_questions_is_named(tmp_path: Path) -> None:
    tokenizer = tiny_models.chat_tokenizer()
    tokenizer.chat_template = "{{ raise_exception('no user\\n here') }}"
    model = load_model(tiny_models.llama_folder(tmp_path / "odd", tokenizer))
    with pytest.raises(ModelError, match="The chat template of odd can't take these questions: no user here"):
        plan(model, TASK, TASK.subtasks()[0], replace(SMALL, chat=True))


@pytest.mark.parametrize(
    ("template", "lost"),
    [("", "1 + 1 ="), ("constant", "1 + 1 ="), ("{{ messages[0].content }}", "a b ="),
     ("{{ messages[-1].content }}", "1 + 1 ="),
     ("{% for m in messages %}{{ m.content | upper }}{% endfor %}", "a b =")],
    ids=["empty", "constant", "first-turn-only", "last-turn-only", "changed"],
)  # fmt: skip
def test_a_template_that_loses_a_question_is_refused(template: str, lost: str, talking: LoadedModel) -> None:
    with pytest.raises(ModelError, match=rf"leaves out or changes the question '{re.escape(lost)}'; leave --chat out"):
        Chat(talking, template).prompt([("1 + 1 =", "2")], " a b =\n")


def test_a_template_is_stored_once_and_counts_for_the_spec(talking: LoadedModel, tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    ways = [replace(SMALL, chat=True), replace(SMALL, chat=True, steps=3), SMALL,
            replace(SMALL, chat=True, chain_of_thought=True, reasoning_tokens=4, positions="all")]  # fmt: skip
    for options in ways:
        (outcome,) = ingest(store, talking, TASK, options)
        assert outcome.status == "stored"
    (again,) = ingest(store, talking, TASK, ways[0])
    assert (again.status, again.circuit_id) == ("kept", 1)
    with reading(store.path) as connection:
        ask = connection.execute
        assert ask("SELECT template FROM chat_template").fetchall() == [(tiny_models.TEMPLATE,)]
        assert ask(
            "SELECT circuit_id, prompt_style, chat, bos FROM circuit ORDER BY 1"
        ).fetchall() == [
            (1, "few-shot", True, True), (2, "few-shot", True, True), (3, "few-shot", False, True),
            (4, "chain-of-thought", True, True),
        ]  # fmt: skip
        assert ask(
            "SELECT circuit_id FROM circuit JOIN chat_template ON spec ->> 'chat_template' = digest ORDER BY 1"
        ).fetchall() == [(1,), (2,), (4,)]
        shown = ask("SELECT clean FROM example WHERE circuit_id = 1 AND position = 0").fetchall()[0][0]
    assert shown.startswith("<bos>[user]")


# What a spec held before there were other ways to ask: none of these keys may change, or all is scored again.
PLAIN = {
    "score_version", "model", "weights", "dtype", "task", "subtask", "parameters", "tokens", "n_pairs", "folds",
    "method", "steps", "grid", "metric", "positions", "ablation",
}  # fmt: skip


def test_specs_of_plain_prompts_are_what_they_were(digits_model: LoadedModel) -> None:
    job = plan(digits_model, TASK, TASK.subtasks()[0], SMALL)
    assert set(job.spec) == PLAIN
    ids: list[Json] = [[list(s.clean), list(s.corrupted), *s.labels[0], s.fold] for s in job.sequences]
    assert job.spec["tokens"] == digest(ids)
    assert job.spec["tokens"] == "546acbb36563a2c8e504efd1ff5e873c3c52d5ed31c4479a615166da4eb25e4f"
