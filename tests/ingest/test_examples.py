"""From a task to pairs of token ids: questions, shots, tokens, partners, folds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tiny_models
from circuitdb.errors import ModelError, TaskError, UsageError
from circuitdb.ingest import LoadedModel, load_model
from circuitdb.ingest.pairs import pair
from circuitdb.ingest.plan import Options, plan
from circuitdb.ingest.prompts import prompt_set
from circuitdb.ingest.sequences import groups, sequences
from circuitdb.ingest.tasks import registry
from circuitdb.ingest.tasks.addition import Addition, parse_digits
from circuitdb.ingest.tasks.task import Question
from circuitdb.ingest.tokens import TokenisedQuestion, starts_with_bos, tokenise
from circuitdb.records import Subtask

TASK = Addition((1, 2, 3))


def cell(a: int, b: int) -> Subtask:
    """The subtask of those digit counts."""
    return next(s for s in TASK.subtasks() if s.parameters == {"digits_a": a, "digits_b": b})


class TestAddition:
    def test_partition(self) -> None:
        assert [s.name for s in TASK.subtasks()] == ["1+1", "1+2", "1+3", "2+1", "2+2", "2+3", "3+1", "3+2", "3+3"]
        assert len(Addition(range(1, 9)).subtasks()) == 64

    @pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 3), (3, 2)])
    def test_digit_counts_answers_and_no_duplicates(self, a: int, b: int) -> None:
        questions = TASK.questions(cell(a, b), 60, seed=4)
        assert len({q.prompt for q in questions}) == 60
        for question in questions:
            first, plus, second, equals = question.prompt.split(" ")
            assert (len(first), plus, len(second), equals) == (a, "+", b, "=")
            assert first[0] != "0"
            assert second[0] != "0"
            assert int(question.answer) == int(first) + int(second)

    def test_seed_decides(self) -> None:
        draw = [TASK.questions(cell(2, 2), 10, seed) for seed in (0, 0, 1)]
        assert draw[0] == draw[1] != draw[2]

    def test_a_small_cell_gives_all_it_has(self) -> None:
        questions = TASK.questions(cell(1, 1), 1000, seed=0)
        assert len({q.prompt for q in questions}) == 81

    @pytest.mark.parametrize(
        ("text", "answer"), [(" 46\n12", "46"), ("46.", "46"), ("466", "466"), ("x", None), ("", None), ("007", "007")]
    )
    def test_read_answer(self, text: str, answer: str | None) -> None:
        assert TASK.read_answer(text) == answer

    @pytest.mark.parametrize("digits", [(), (0,), (9,)])
    def test_impossible_digits(self, digits: tuple[int, ...]) -> None:
        with pytest.raises(UsageError, match="1 to 8 digits"):
            Addition(digits)

    @pytest.mark.parametrize(
        ("text", "digits"),
        [("1-3", (1, 2, 3)), ("2", (2,)), ("1,4", (1, 4)), ("3,1-2", (1, 2, 3)), (" 1 , 2 ", (1, 2))],
    )
    def test_parse_digits(self, text: str, digits: tuple[int, ...]) -> None:
        assert parse_digits(text) == digits

    @pytest.mark.parametrize("text", ["", "a", "3-1", "1-", "-1", "1,,2", "9", "1-999999999999", "1.5"])
    def test_bad_digits(self, text: str) -> None:
        with pytest.raises(UsageError, match="--digits"):
            parse_digits(text)

    def test_unknown_task(self) -> None:
        with pytest.raises(UsageError, match="There is no task 'sums'; choose one of addition"):
            registry.find("sums", {})


class TestPrompts:
    def test_shots_are_never_scored(self) -> None:
        found = prompt_set(TASK, cell(1, 1), n_examples=78, shots=3, seed=0)
        solved = {question.solved for question in found.questions}
        assert len(found.shots) == 3
        assert not solved & {shot.solved for shot in found.shots}
        assert len(solved) == 78

    def test_zero_shot_has_no_shots(self) -> None:
        assert prompt_set(TASK, cell(1, 1), n_examples=4, shots=0, seed=0).shots == ()

    def test_too_few_questions_for_the_shots(self) -> None:
        with pytest.raises(TaskError, match="has 81 different questions; 80 shots and a pair to score need 82"):
            prompt_set(TASK, cell(1, 1), n_examples=4, shots=80, seed=0)


class TestTokens:
    def test_a_space_of_its_own_belongs_to_the_prompt(self, digits_model: LoadedModel) -> None:
        found = tokenise(digits_model, "1 + 1 = 2\n", Question("3 + 4 =", "7"))
        assert found.text == "1 + 1 = 2\n3 + 4 = "
        assert len(found.ids) == len(found.text)
        assert digits_model.tokenizer is not None
        assert digits_model.tokenizer.decode(list(found.answer_ids)) == "7"

    def test_a_space_glued_to_the_answer_does_not(self, words_model: LoadedModel) -> None:
        found = tokenise(words_model, "1 + 1 = 2\n", Question("13 + 4 =", "17"))
        assert found.text == "1 + 1 = 2\n13 + 4 ="
        assert words_model.tokenizer is not None
        assert words_model.tokenizer.convert_ids_to_tokens(list(found.answer_ids)) == [" 17"]
        assert not starts_with_bos(words_model, found.ids)

    def test_an_answer_may_go_on_where_the_prompt_ends(self, digits_model: LoadedModel) -> None:
        found = tokenise(digits_model, "1 + 1 = 2\n", Question("13 + 4 = 1", "7", gap=""))
        assert found.text == "1 + 1 = 2\n13 + 4 = 1"
        assert digits_model.tokenizer is not None
        assert digits_model.tokenizer.decode(list(found.answer_ids)) == "7"

    def test_a_prompt_without_a_boundary_before_the_answer(self, words_model: LoadedModel) -> None:
        with pytest.raises(TaskError, match="no token boundary before the answer in '13 \\+ 4 = 17'"):
            tokenise(words_model, "", Question("13 + 4 = 1", "7", gap=""))

    def test_without_tokenizer(self, gqa: LoadedModel) -> None:
        with pytest.raises(ModelError, match="has no tokenizer; a task needs one"):
            tokenise(gqa, "", Question("3 + 4 =", "7"))


def tokens(length: int, answer: str, first: int) -> TokenisedQuestion:
    """A question of that many tokens whose answer begins with the token `first`."""
    return TokenisedQuestion(Question(f"{length} {answer}", answer), "", tuple(range(length)), (first, 0))


class TestPairs:
    def test_each_is_a_partner_once_with_another_answer_and_first_token_where_that_can_be(self) -> None:
        # Three answers begin with token 1: they and the two others can't all have partners that begin otherwise.
        questions = [tokens(5, str(n), first) for n, first in enumerate((1, 1, 1, 2, 3))]
        found = pair(questions, folds=1, compared=0)
        assert sorted(questions.index(p.corrupted) for p in found.pairs) == [0, 1, 2, 3, 4]
        assert all(p.clean.question.answer != p.corrupted.question.answer for p in found.pairs)
        assert sum(p.clean.answer_ids[0] == p.corrupted.answer_ids[0] for p in found.pairs) == 1

    def test_strict_pairs_never_begin_alike_and_the_reason_is_kept(self) -> None:
        questions = [tokens(5, str(n), first) for n, first in enumerate((1, 1, 1, 2, 3))]
        found = pair(questions, folds=1, compared=1)
        assert len(found.pairs) == 4
        assert all(p.clean.answer_ids[0] != p.corrupted.answer_ids[0] for p in found.pairs)
        (reason,) = [outcome for outcome in found.outcomes if isinstance(outcome, str)]
        assert reason == "every question that could be its partner is another one's"

    def test_reasons_of_those_without_partner(self) -> None:
        questions = [tokens(5, "17", 1), tokens(6, "17", 1), tokens(6, "17", 1), tokens(7, "1", 1), tokens(7, "12", 1)]
        assert pair(questions, folds=1, compared=1).outcomes == (
            "no other question of its fold has 5 tokens",
            "every question of its fold and token length has the same answer",
            "every question of its fold and token length has the same answer",
            "every question of its fold and token length has an answer that begins with the same token",
            "every question of its fold and token length has an answer that begins with the same token",
        )

    @pytest.mark.parametrize("folds", [1, 2, 3])
    def test_folds_have_no_question_in_common(self, digits_model: LoadedModel, folds: int) -> None:
        for subtask in TASK.subtasks():
            found = plan(digits_model, TASK, subtask, Options(n_examples=30, shots=1, folds=folds)).pairing.pairs
            seen = [
                {t for p in found if p.fold == fold for t in (p.clean.text, p.corrupted.text)} for fold in range(folds)
            ]
            assert sum(len(texts) for texts in seen) == len(set().union(*seen)) == 30
            assert len({p.corrupted.text for p in found}) == len(found)

    def test_groups_hold_one_length_each(self) -> None:
        questions = [tokens(5, "17", 1), tokens(6, "25", 2), tokens(5, "38", 3), tokens(6, "41", 4)]
        found, places = groups([sequences(p, "last") for p in pair(questions, folds=1, compared=1).pairs])
        assert places == [0, 2, 1, 3]
        assert [tuple(g.clean.shape) for g in found] == [(2, 5), (2, 6)]
        assert found[0].labels is not None
        assert found[0].labels.tolist() == [[[1, 3]], [[3, 1]]]
        assert [g.fold.tolist() for g in found] == [[0, 0], [0, 0]]


class TestPlan:
    def test_another_configuration_of_the_same_weights_is_another_spec(self, tmp_path: Path) -> None:
        folder = tiny_models.llama_folder(tmp_path / "tiny", tiny_models.digit_tokenizer())
        before = plan(load_model(folder), TASK, cell(1, 1), Options()).spec_digest
        assert plan(load_model(folder), TASK, cell(1, 1), Options()).spec_digest == before
        config = json.loads((folder / "config.json").read_text())
        config["rms_norm_eps"] = 1e-3
        (folder / "config.json").write_text(json.dumps(config))
        assert plan(load_model(folder), TASK, cell(1, 1), Options()).spec_digest != before

    def test_same_inputs_same_digest_and_each_option_changes_it(self, digits_model: LoadedModel) -> None:
        base = plan(digits_model, TASK, cell(1, 1), Options())
        assert plan(digits_model, TASK, cell(1, 1), Options(batch_size=2)).spec_digest == base.spec_digest
        others = [
            Options(seed=1), Options(steps=4), Options(grid="left"), Options(metric="logit-difference"),
            Options(shots=2), Options(n_examples=8), Options(folds=4), Options(positions="answer"),
            Options(method="eap", metric="nll"), Options(method="eap", metric="nll", ablation="zero"),
            Options(metric="logit-difference", against=("1", "2")),
        ]  # fmt: skip
        digests = {plan(digits_model, TASK, cell(1, 1), options).spec_digest for options in others}
        assert len(digests | {base.spec_digest}) == 1 + len(others)

    def test_prompt_beyond_the_context(self, digits_model: LoadedModel) -> None:
        with pytest.raises(
            TaskError, match=r"3\+3 has prompts of \d+ tokens, more than the 128 of .*: use fewer shots"
        ):
            plan(digits_model, TASK, cell(3, 3), Options(shots=12))

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"n_examples": 1}, "number of examples must be at least 2, not 1"),
            ({"shots": -1}, "number of shots must be at least 0, not -1"),
            ({"folds": 0}, "number of folds must be at least 1, not 0"),
            ({"n_examples": 5, "folds": 3}, "5 examples can't be split into 3 folds with at least a pair in each"),
            ({"batch_size": 0}, "at least one pair, not 0"),
            ({"batch_size": 2.5}, "a whole number of pairs, at least one pair, not 2.5"),
            ({"n_examples": "8"}, "number of examples must be a whole number, not '8'"),
            ({"folds": 1.5}, "number of folds must be a whole number, not 1.5"),
            ({"seed": "x"}, "must be a 64-bit whole number"),
            ({"seed": 2**63}, "must be a 64-bit whole number"),
            ({"method": "eap"}, "zero by construction"),
        ],
    )
    def test_impossible_options(self, given: dict[str, int], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            Options(**given)  # type: ignore[arg-type]


def test_double_bos_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    from tokenizers import processors

    import tiny_models

    tokenizer = tiny_models.word_tokenizer()
    bos = tokenizer.bos_token_id
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> <bos> $A", special_tokens=[("<bos>", bos)]
    )
    folder = tiny_models.llama_folder(tmp_path_factory.mktemp("bos") / "double", tokenizer)
    with pytest.raises(ModelError, match="puts two BOS tokens in front"):
        tokenise(load_model(folder), "", Question("13 + 4 =", "17"))
