"""Tasks in files: every format, and what the rows become."""

from __future__ import annotations

import codecs
import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import tiny_models
from circuitdb.errors import TaskError, UsageError
from circuitdb.ingest import FileTask, LoadedModel, Options, ingest, load_model
from circuitdb.ingest.jobs import Job
from circuitdb.ingest.plan import plan
from circuitdb.ingest.tasks import registry
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.ingest.tasks.task import Question
from circuitdb.ingest.tokens import spelt
from circuitdb.store import Store, read_finished
from task_files import FIVE, without, write

BARE = "prompt,answer\n" + "".join(f"{a} + {a} =,{2 * a}\n" for a in range(1, 9))
QUICK = Options(n_examples=16, shots=0, steps=2)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A tiny Llama that reads ASCII, character by character."""
    folder = tmp_path_factory.mktemp("ascii") / "tiny"
    return load_model(tiny_models.llama_folder(folder, tiny_models.character_tokenizer()))


def everything(task: FileTask) -> list[Question]:
    """All questions, in the order of the file."""
    return sorted((q for s in task.subtasks() for q in task.questions(s, 10_000, 0)), key=lambda q: q.row)


def jobs(model: LoadedModel, task: FileTask, options: Options = QUICK) -> list[Job]:
    """What an ingest would score."""
    return [plan(model, task, subtask, options) for subtask in task.subtasks()]


class TestFormats:
    def test_five_lines(self, tmp_path: Path) -> None:
        task = FileTask(write(tmp_path, "signs.csv", FIVE))
        assert (task.name, task.notes) == ("signs", ())
        assert [(s.task, s.name, s.parameters) for s in task.subtasks()] == [
            ("signs", "plus", {}),
            ("signs", "minus", {}),
        ]
        first = everything(task)[0]
        partner = Question("2 + 4 =", "6", file="signs.csv", row=2)
        assert first == Question("2 + 3 =", "5", corrupted=partner, file="signs.csv", row=2)
        assert first.solved == "2 + 3 = 5"

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.csv", codecs.BOM_UTF8 + FIVE.encode()),
            ("a.csv", FIVE.replace("\n", "\r\n")),
            ("a.csv", FIVE.replace("\n", "\r")),
            ("a.csv", FIVE.replace(",", ";")),
            ("a.csv", FIVE.replace(",", "\t")),
            ("a.tsv", FIVE.replace(",", "\t")),
            ("a.csv", FIVE.replace("clean,", " Clean ,").replace("answer", "ANSWER")),
            ("a.csv", FIVE.replace("2 + 3 =", '"2 + 3 ="').replace("4 =,5", "4 = ,5")),
            ("a.csv", FIVE.rstrip() + "\n\n\n"),
        ],
        ids=["bom", "crlf", "cr", "semicolons", "tabs", "tsv", "names", "quotes and a space", "blank lines"],
    )
    def test_the_same_rows_however_they_are_written(self, tmp_path: Path, name: str, content: str | bytes) -> None:
        expected = everything(FileTask(write(tmp_path, "a.csv", FIVE)))
        (tmp_path / "other").mkdir()
        found = everything(FileTask(write(tmp_path / "other", name, content)))
        assert [q.solved for q in found] == [q.solved for q in expected]
        assert [q.corrupted and q.corrupted.solved for q in found] == [
            q.corrupted and q.corrupted.solved for q in expected
        ]

    def test_text_stays_as_it_is_written(self, tmp_path: Path) -> None:
        rows = {"prompt": ["a", "b", "c"], "answer": ["007", "1e5", "TRUE"]}
        lines = list(zip(*rows.values(), strict=True))
        pyarrow.parquet.write_table(pa.table(rows), tmp_path / "a.parquet")
        objects = [dict(zip(rows, line, strict=True)) for line in lines]
        write(tmp_path, "a.csv", "prompt,answer\n" + "".join(f"{p},{a}\n" for p, a in lines))
        write(tmp_path, "a.json", json.dumps(objects))
        write(tmp_path, "a.jsonl", "\n\n".join(map(json.dumps, objects)))
        found = {path.suffix: everything(FileTask(path)) for path in sorted(tmp_path.iterdir())}
        assert {ending: [q.answer for q in asked] for ending, asked in found.items()} == {
            ending: ["007", "1e5", "TRUE"] for ending in (".csv", ".json", ".jsonl", ".parquet")
        }
        assert {ending: [q.row for q in asked] for ending, asked in found.items()} == {
            ".csv": [2, 3, 4], ".json": [1, 2, 3], ".jsonl": [1, 3, 5], ".parquet": [1, 2, 3],
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("prompt", "solved"),
        [("a b", "a b 1"), ("a b ", "a b 1"), ("a b  ", "a b  1"), ("a b\n", "a b\n1"), ("a\nb", "a\nb 1")],
    )
    def test_one_space_stands_before_the_answer(self, tmp_path: Path, prompt: str, solved: str) -> None:
        path = write(tmp_path, "a.csv", f'prompt,answer\n"{prompt}", 1 \nb,2\n')
        assert everything(FileTask(path))[0].solved == solved

    def test_parameters_have_types(self, tmp_path: Path) -> None:
        path = write(tmp_path, "a.csv", "prompt,answer,subtask,n,share,code,Easy\na,1,x,3,0.5,01,true\n"
                     "b,2,x,3,0.5,01,true\nc,1,y,4,2,02,false\nd,2,y,4,2,02,false\n")  # fmt: skip
        assert [s.parameters for s in FileTask(path).subtasks()] == [
            {"n": 3, "share": 0.5, "code": "01", "Easy": True},
            {"n": 4, "share": 2.0, "code": "02", "Easy": False},
        ]
        typed = write(tmp_path, "a.json", json.dumps([
            {"prompt": "a", "answer": 1, "n": "3", "m": 1, "b": True},
            {"prompt": "b", "answer": 2, "n": "3", "m": 1.0, "b": True},
        ]))  # fmt: skip
        (subtask,) = FileTask(typed).subtasks()
        assert (subtask.name, subtask.parameters) == ("a", {"n": "3", "m": 1.0, "b": True})

    def test_auto_circuit(self, tmp_path: Path) -> None:
        prompts = [
            {"clean": "Ann and Bob: Ann to", "corrupt": "Ann and Bob: Cid to", "answers": [" Bob", " Ben"],
             "wrong_answers": [" Ann"]},
            {"clean": "1732 to 17", "corrupt": "1701 to 17", "answers": ["52"], "wrong_answers": ["01"]},
        ]  # fmt: skip
        task = FileTask(write(tmp_path, "a.json", json.dumps({"prompts": prompts, "seq_labels": ["x"]})))
        assert [(q.solved, q.corrupted and q.corrupted.solved) for q in everything(task)] == [
            ("Ann and Bob: Ann to Bob", "Ann and Bob: Cid to Ann"),
            ("1732 to 1752", "1701 to 1701"),
        ]
        assert task.notes == ("a.json: not read: seq_labels.",)
        assert everything(task)[0].is_right(task.read_answer("Ben, who"))
        assert not everything(task)[0].is_right(task.read_answer("Ann"))

    def test_big_bench(self, tmp_path: Path) -> None:
        examples: list[dict[str, object]] = [
            {"input": "1 + 1", "target": ["2", "two"]},
            {"input": "2 + 2", "target_scores": {"5": 0, "4": 1, "3": 0.5}},
            {"input": "3 + 3", "target": "6"},
        ]
        named = {"name": "sums", "task_prefix": "Add.", "examples": examples}
        task = FileTask(write(tmp_path, "task.json", json.dumps(named)))
        assert (task.name, task.notes) == ("sums", ("task.json: not read: task_prefix.",))
        assert [q.solved for q in everything(task)] == ["Q: 1 + 1\nA: 2", "Q: 2 + 2\nA: 4", "Q: 3 + 3\nA: 6"]
        assert [q.is_right(task.read_answer("two")) for q in everything(task)] == [True, False, False]
        plain = {"examples": examples, "example_input_prefix": "", "example_output_prefix": " ->"}
        task = FileTask(write(tmp_path, "plain.json", json.dumps(plain)), name="mine")
        assert (task.name, everything(task)[0].solved) == ("mine", "1 + 1 ->2")

    def test_eap_ig_answers_are_tokens(self, tmp_path: Path, model: LoadedModel) -> None:
        tokenizer = model.tokenizer
        assert tokenizer is not None
        bob, ann, digit = (tokenizer(text)["input_ids"][0] for text in "BA7")
        path = write(tmp_path, "ioi.csv", f",clean,corrupted,corrupted_hard,correct_idx,incorrect_idx\n"
                     f"9,Ann to ,Cid to ,x,{bob},{ann}\n4,\"Ann, \",\"Cid, \",y,{digit},{ann}\n")  # fmt: skip
        task = FileTask(path)
        assert task.notes == ("ioi.csv: not read: corrupted_hard.",)
        (job,) = jobs(model, _spelt(model, task))
        assert sorted((q.text, q.question.answer, q.answer_ids) for q in job.questions) == [
            ("Ann to ", "B", (bob,)), ("Ann, ", "7", (digit,))
        ]  # fmt: skip
        assert sorted(s.labels for s in job.sequences) == sorted([((bob, ann),), ((digit, ann),)])
        assert _spelt(model, task).read_answer("7") == "7"

    def test_eap_ig_without_wrong_answers(self, tmp_path: Path, model: LoadedModel) -> None:
        path = write(tmp_path, "a.csv", "clean,corrupted,correct_idx\nab ,ac ,20\nbb ,bc ,30\n")
        (job,) = jobs(model, _spelt(model, FileTask(path)))
        assert sorted(s.labels for s in job.sequences) == [((20, -1),), ((30, -1),)]
        with pytest.raises(TaskError, match=r"row 2: it has no corrupted answer that the answer could be compared"):
            jobs(model, _spelt(model, FileTask(path)), Options(shots=0, metric="logit-difference"))

    def test_an_id_beyond_the_vocabulary(self, tmp_path: Path, model: LoadedModel) -> None:
        path = write(tmp_path, "a.csv", "clean,corrupted,correct_idx\nab ,ac ,20\nbb ,bc ,50257\n")
        with pytest.raises(TaskError, match=r"a\.csv, row 3: the model's tokenizer has no token 50257\."):
            ingest(Store(tmp_path / "c.duckdb"), model, FileTask(path), QUICK)


def _spelt(model: LoadedModel, task: FileTask) -> FileTask:
    found = spelt(model, task)
    assert isinstance(found, FileTask)
    return found


class TestRegistry:
    def test_a_file_is_a_task(self, tmp_path: Path) -> None:
        found = registry.find(str(write(tmp_path, "signs.csv", FIVE)), {}, called="mine")
        assert isinstance(found, FileTask)
        assert found.name == "mine"
        assert isinstance(registry.find("addition", {"digits": "1"}), Addition)

    def test_a_file_has_no_partition_but_its_own(self, tmp_path: Path) -> None:
        path = str(write(tmp_path, "signs.csv", FIVE))
        assert registry.read_options(path, []) == {}
        with pytest.raises(UsageError, match=r"signs\.csv are those that it names; leave --partition and --digits out"):
            registry.read_options(path, ["digits=1"])

    def test_only_a_file_gets_another_name(self) -> None:
        with pytest.raises(UsageError, match="--task-name is for a task in a file"):
            registry.find("addition", {"digits": "1"}, called="mine")


class TestDraw:
    def test_rows_are_drawn_by_the_seed_and_never_twice(self, tmp_path: Path) -> None:
        task = FileTask(write(tmp_path, "a.csv", BARE))
        (subtask,) = task.subtasks()
        draws = [[q.row for q in task.questions(subtask, 5, seed)] for seed in (0, 0, 1)]
        assert draws[0] == draws[1] != draws[2]
        assert len(set(draws[0])) == 5
        assert sorted(q.row for q in task.questions(subtask, 99, 0)) == list(range(2, 10))

    def test_repeated_questions_are_left_out_with_a_note(self, tmp_path: Path) -> None:
        task = FileTask(write(tmp_path, "a.csv", BARE + "1 + 1 =,2\n" * 7))
        assert [q.row for q in everything(task)] == list(range(2, 10))
        assert task.notes == (
            "a.csv: left out, since they repeat a question of their subtask: rows 10, 11, 12, 13, 14 and 2 more.",
        )

    @pytest.mark.parametrize(
        ("text", "answer"),
        [("New York.", "New York"), ("New", "New"), ("Newer", None), ("3 is", "3"), ("3.5", None), ("3.", "3"),
         ("35", None), ("-3", "-3"), ("", None), ("new", None)],
    )  # fmt: skip
    def test_answers_are_read_as_whole_words(self, tmp_path: Path, text: str, answer: str | None) -> None:
        rows = [("a", "New York"), ("b", "New"), ("c", "3"), ("d", "-3")]
        task = FileTask(write(tmp_path, "a.csv", "prompt,answer\n" + "".join(f"{p},{a}\n" for p, a in rows)))
        assert task.read_answer(text) == answer


class TestPairs:
    def test_each_row_is_its_own_pair(self, tmp_path: Path, model: LoadedModel) -> None:
        rows = "".join(f"{a} + {a} =,{a} + {9 - a} =,{2 * a},9\n" for a in range(1, 9))
        task = FileTask(write(tmp_path, "a.csv", "clean,corrupted,answer,corrupted_answer\n" + rows))
        (job,) = jobs(model, task, Options(shots=2, folds=3))
        assert [p.fold for p in job.pairing.pairs] == [0, 1, 2, 0, 1, 2]
        for pair in job.pairing.pairs:
            clean, corrupted = pair.clean.question, pair.corrupted.question
            assert clean.corrupted == corrupted
            header = pair.clean.text.removesuffix(f"{clean.prompt} ")
            assert pair.corrupted.text == f"{header}{corrupted.prompt} "
            shots = header.splitlines()
            assert len(shots) == 2
            assert clean.solved not in shots
            assert corrupted.solved not in shots

    def test_without_partners_they_are_found(self, tmp_path: Path, model: LoadedModel) -> None:
        (job,) = jobs(model, FileTask(write(tmp_path, "a.csv", BARE)))
        pairs = job.pairing.pairs
        assert len(pairs) == 8
        assert all(p.clean.question.answer != p.corrupted.question.answer for p in pairs)

    def test_rows_of_unequal_length_are_skipped_and_counted(self, tmp_path: Path, model: LoadedModel) -> None:
        more = "8 + 1 =,8 + 10 =,9,18,plus\n"
        (outcome, _) = ingest(
            Store(tmp_path / "c.duckdb"), model, FileTask(write(tmp_path, "a.csv", FIVE + more)), QUICK
        )
        assert (outcome.status, outcome.n_examples, outcome.n_skipped) == ("stored", 2, 1)
        (job, _) = jobs(model, FileTask(tmp_path / "a.csv"))
        assert [o for o in job.pairing.outcomes if isinstance(o, str)] == [
            "a.csv, row 6: its clean prompt has 8 tokens and its corrupted one 9"
        ]

    def test_all_of_unequal_length_names_the_first_row(self, tmp_path: Path, model: LoadedModel) -> None:
        task = FileTask(write(tmp_path, "a.csv", FIVE.replace("2 + 4", "2 + 44").replace("5 + 3", "5 + 333")))
        with pytest.raises(TaskError) as failure:
            jobs(model, task)
        assert str(failure.value).startswith(
            "a plus has pairs to score in 0 of 2 folds: a.csv, row 2: its clean prompt has 8 tokens and its corrupted "
            "one 9; a.csv, row 3: its clean prompt has 8 tokens and its corrupted one 10; use more examples"
        )

    def test_many_reasons_are_cut_short(self, tmp_path: Path, model: LoadedModel) -> None:
        rows = "".join(f"{a} =,{a}0 =,{a}\n" for a in range(1, 9))
        with pytest.raises(TaskError, match=r"a\.csv, row 2: .*; a\.csv, row 4: [^;]*; and 5 more; use more"):
            jobs(model, FileTask(write(tmp_path, "a.csv", "clean,corrupted,answer\n" + rows)))

    def test_a_partner_among_the_shots_is_skipped(self, tmp_path: Path, model: LoadedModel) -> None:
        """Three couples, each row the partner of another."""
        couples = "".join(f"{a} =,{b} =,{a},{b}\n" for a, b in ("12", "21", "34", "43", "56", "65"))
        task = FileTask(write(tmp_path, "a.csv", "clean,corrupted,answer,corrupted_answer\n" + couples))
        (job,) = jobs(model, task, Options(shots=1))
        (reason,) = (o for o in job.pairing.outcomes if isinstance(o, str))
        assert reason.endswith(": its corrupted prompt stands among the shots")
        assert len(job.pairing.pairs) == 4

    def test_a_metric_that_compares_needs_answers_that_differ(self, tmp_path: Path, model: LoadedModel) -> None:
        rows = "1 =,2 =,10,11\n3 =,4 =,30,40\n5 =,6 =,50,60\n"
        task = FileTask(write(tmp_path, "a.csv", "clean,corrupted,answer,corrupted_answer\n" + rows))
        (job,) = jobs(model, task, Options(shots=0, metric="logit-difference"))
        assert [o for o in job.pairing.outcomes if isinstance(o, str)] == [
            "a.csv, row 2: its answer and its corrupted answer begin with the same token"
        ]
        (job,) = jobs(model, task, Options(shots=0, metric="logit-difference", positions="answer"))
        assert len(job.pairing.pairs) == 3
        (job,) = jobs(model, task, Options(shots=0))
        assert len(job.pairing.pairs) == 3

    def test_a_corrupted_answer_need_not_be_known(self, tmp_path: Path, model: LoadedModel) -> None:
        path = write(tmp_path, "a.csv", without("corrupted_answer"))
        store = Store(tmp_path / "c.duckdb")
        outcomes = ingest(store, model, FileTask(path), QUICK)
        assert [outcome.status for outcome in outcomes] == ["stored", "stored"]
        with pytest.raises(TaskError, match="it has no corrupted answer that the answer could be compared with"):
            jobs(model, FileTask(path), Options(shots=0, metric="logit-difference"))
        against = Options(shots=0, metric="logit-difference", against=("1", "3"))
        assert len(jobs(model, FileTask(path), against)) == 2

    def test_too_few_rows(self, tmp_path: Path, model: LoadedModel) -> None:
        task = FileTask(write(tmp_path, "a.csv", FIVE + "1 * 2 =,1 * 3 =,2,3,times\n"))
        with pytest.raises(
            TaskError, match=r"^a\.csv, row 6: a times has 1 different question; 0 shots and a pair to "
        ):
            plan(model, task, task.subtasks()[2], QUICK)
        with pytest.raises(TaskError, match=r"^a\.csv, row 2: a plus has 2 different questions; 3 shots .* use fewer"):
            plan(model, task, task.subtasks()[0], Options(shots=3))


class TestDigest:
    def digests(self, model: LoadedModel, *paths: Path, name: str | None = None) -> list[Sequence[str]]:
        return [[job.spec_digest for job in jobs(model, FileTask(path, name=name))] for path in paths]

    def test_it_depends_on_the_rows_and_not_on_the_file(self, tmp_path: Path, model: LoadedModel) -> None:
        (tmp_path / "b").mkdir()
        header, *lines = [line.split(",") for line in FIVE.splitlines()]
        objects = [dict(zip(header, line, strict=True)) for line in lines]
        pyarrow.parquet.write_table(pa.Table.from_pylist(objects), tmp_path / "signs.parquet")
        same = self.digests(
            model,
            write(tmp_path, "signs.csv", FIVE),
            write(tmp_path / "b", "signs.csv", codecs.BOM_UTF8 + FIVE.replace("\n", "\r\n").encode()),
            write(tmp_path, "signs.jsonl", "\n".join(map(json.dumps, objects))),
            tmp_path / "signs.parquet",
        )
        assert all(found == same[0] for found in same)
        other = write(tmp_path, "other.csv", FIVE)
        assert self.digests(model, other, name="signs") == same[:1]
        assert self.digests(model, other) != same[:1]

    def test_one_without_subtasks_is_found_under_another_name(self, tmp_path: Path, model: LoadedModel) -> None:
        a, b = write(tmp_path, "a.csv", BARE), write(tmp_path, "b.csv", BARE)
        assert self.digests(model, a, name="sums") == self.digests(model, b, name="sums")

    def test_a_changed_row_is_scored_anew(self, tmp_path: Path, model: LoadedModel) -> None:
        store = Store(tmp_path / "c.duckdb")
        path = write(tmp_path, "signs.csv", FIVE)
        assert [o.status for o in ingest(store, model, FileTask(path), QUICK)] == ["stored", "stored"]
        write(tmp_path, "signs.csv", FIVE.replace("9 - 1 =,9 - 4 =,8,5", "9 - 2 =,9 - 4 =,7,5"))
        assert [o.status for o in ingest(store, model, FileTask(path), QUICK)] == ["kept", "stored"]
        assert len(read_finished(store)) == 3
