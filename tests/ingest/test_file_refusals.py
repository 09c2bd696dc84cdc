"""Tasks in files: what is refused, in one sentence with the row."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from circuitdb.errors import CircuitdbError, UsageError
from circuitdb.ingest import FileTask
from task_files import FIVE, without, write

REFUSED: list[tuple[str, str | bytes, str]] = [
    ("a.csv", without("answer"), "row 1: there is no column answer; the columns are clean, corrupted, "),
    ("a.csv", without("clean"), "row 1: there is no column clean or prompt; the columns are "),
    ("a.csv", without("corrupted"), "row 1: there is a column corrupted_answer and none called corrupted,"),
    ("a.csv", FIVE.split("\n", 1)[1], "row 1: there is no column clean or prompt; the columns are 2 + 3 =, "),
    ("a.csv", FIVE.replace("6,8,plus", "6,,plus"), "row 3: corrupted_answer is empty."),
    ("a.csv", FIVE.replace("7 - 3 =", "  "), "row 4: clean is empty."),
    ("a.csv", FIVE.replace("6,8,plus", "6,plus"), "row 3: it has 4 cells and the header 5; text with a comma in it "),
    ("a.csv", FIVE.replace("8,plus", "8,Plus"), "row 3: the subtask 'Plus' is written 'plus' in row 2;"),
    ("a.csv", FIVE.replace("5,minus", "5,minus "), "row 5: the subtask 'minus ' is written 'minus' in row 4;"),
    ("a.csv", "\n".join(FIVE.splitlines()[:2]), "row 2: it is the only question; give at least two."),
    ("a.csv", FIVE.splitlines()[0], "row 1: no rows follow; give at least two questions."),
    ("a.csv", "", "row 1: the file is empty."),
    ("a.csv", "prompt,answer\na,4\nb,4\n", "row 2: its answer '4' is the answer of every row, and a partner needs"),
    ("a.csv", FIVE.replace("9 - 4", "9 - 1"), "row 5: its clean and its corrupted prompt are the same,"),
    ("a.csv", "prompt,answer\na,4\nb,5\na,6\n", "row 4: it asks what row 2 asks and has another answer;"),
    ("a.csv", 'prompt,answer\na,4\nb,"5\n6"\n', "row 3: answer has a line break; an answer is of one line."),
    ("a.csv", "prompt,answer,n\na,4,1\nb,5,2\n", "row 3: n is 2, but 1 in row 2 of the same subtask 'a';"),
    ("a.csv", "prompt,clean,answer\na,a,4\nb,b,5\n", "row 1: there are columns clean and prompt, which mean the same"),
    ("a.csv", "prompt,answer,Answer\na,a,4\nb,b,5\n", "row 1: several columns are called answer;"),
    ("a.csv", FIVE.replace("minus", "mínus").encode("latin-1"), "row 4: byte 0xed is no UTF-8, but 'í' in Windows"),
    ("a.csv", FIVE.encode("utf-16"), "row 1: the file is in UTF-16, as its first bytes say; save it as UTF-8."),
    ("a.csv", FIVE.encode("utf-16-le"), "row 1: the file is in UTF-16, or no text at all; save it as UTF-8."),
    ("a.csv", FIVE.encode("utf-32"), "row 1: the file is in UTF-32, as its first bytes say;"),
    ("a.csv", FIVE.replace("7 - 3", "7 \0 3"), "row 4: there is a zero byte, which is no text; take it out."),
    ("a.csv", FIVE.replace("7 - 3", '"7 - 3'), "row 4: a quotation mark that opens in it never closes."),
    ("a.csv", FIVE.replace("7 - 3", "7" * 200_000), "row 4: it is no valid CSV (field larger than field limit"),
    ("a.csv", "clean,corrupted,correct_idx\na,b,x\nc,d,7\n", "row 2: correct_idx is 'x', which is no token id."),
    ("a.csv", "clean,correct_idx\na,6\nc,7\n", "row 1: there is no column corrupted beside correct_idx."),
    ("a.csv", "clean,corrupted,correct_idx\nfrom 1352 to 13,from 1301 to 13,52\nfrom 1304 to 13,from 1301 to 13,4\n",
     "row 2: correct_idx is 52, the end of the year in the prompt, as in EAP-IG's greater-than,"),
    ("a.jsonl", '{"prompt": "a", "answer": 7}\n{"prompt": "b"}\n', "row 2: it has no value 'answer';"),
    ("a.jsonl", '{"prompt": "a", "answer": 7}\n{"prompt": "b", "answer": 8, "n": 1}\n',
     "row 2: it has a value 'n' that row 1 does not have; all rows need the same."),
    ("a.jsonl", '{"prompt": "a", "answer": 7}\n{"prompt": \n', "row 2: it is no valid JSON (Expecting value, column"),
    ("a.jsonl", '{"prompt": "a", "answer": 7}\n[1]\n', "row 2: it is no object with named values."),
    ("a.jsonl", '{"prompt": "a", "answer": 7.50}\n', "row 1: answer is 7.5 and no text; write it as text."),
    ("a.jsonl", '{"prompt": "a", "answer": 7, "n": "1"}\n{"prompt": "b", "answer": 8, "n": 1}\n',
     "row 2: n is a number, but text in the rows before it."),
    ("a.jsonl", '{"prompt": "a", "answer": 7, "n": NaN}\n', "row 1: n is nan, which is no number to tell subtasks by."),
    ("a.jsonl", '{"prompt": "a", "answer": 7, "n": [1]}\n', "row 1: n is no number, text, or true or false,"),
    ("a.jsonl", "", "row 1: no rows follow; give at least two questions."),
    ("a.json", '[{"prompt": "a", "answer": 7},\n{"prompt" 1}]', "line 2: it is no valid JSON (Expecting ':'"),
    ("a.json", '[{"prompt": null, "answer": 7}]', "row 1: prompt is empty."),
    ("a.json", '{"rows": []}', "row 1: it is neither a list of objects nor a file of auto-circuit (prompts) or"),
    ("a.json", "[" * 100_000, "row 1: it is nested too deeply to be a question."),
    ("a.json", '[{"prompt": "a", "answer": ' + "1" * 5000 + "}]", "row 1: a number has too many digits."),
    ("a.json", '{"prompts": [{"clean": [1], "corrupt": [2], "answers": [3], "wrong_answers": [4]}]}',
     "row 1: clean is no text; a prompt of token ids is not read."),
    ("a.json", '{"prompts": [{"clean": "a"}]}', "row 1: it has no corrupt."),
    ("a.json", '{"examples": [{"input": "a", "target": "b"}, {"input": "c"}]}',
     "row 2: it has neither a target that is text nor target_scores."),
    ("a.json", '{"examples": []}', "row 1: examples is no list of examples."),
    ("a.json", '{"prompts": []}', "row 1: prompts is no list of prompts."),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), REFUSED, ids=[case[2][:50] for case in REFUSED])
def test_refusals_are_one_sentence_with_the_row(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    with pytest.raises(UsageError) as failure:
        FileTask(write(tmp_path, name, content))
    said = str(failure.value)
    assert said.startswith(f"{name}, {message}")
    assert said.endswith(".")
    assert "\n" not in said


def test_files_that_are_none(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "no.csv", "There is no file"),
        (tmp_path, "is a folder; name a file in it."),
        (write(tmp_path, "a.parquet", "abcd"), "can't be read as Parquet"),
        (write(tmp_path, "a.xlsx", "abcd"), "its name ends in none of .csv, .tsv, .json"),
    ):
        with pytest.raises(UsageError, match=message):
            FileTask(path)
    with pytest.raises(UsageError, match="not empty"):
        FileTask(write(tmp_path, "a.csv", FIVE), name=" ")
    floats = pa.table({"prompt": ["a", "b"], "answer": [1.0, 2.0]})
    pyarrow.parquet.write_table(floats, tmp_path / "f.parquet")
    with pytest.raises(UsageError, match=r"f\.parquet, row 1: answer is 1\.0 and no text"):
        FileTask(tmp_path / "f.parquet")


def test_every_error_is_one_of_ours(tmp_path: Path) -> None:
    """Whatever bytes come, a task or a sentence is made of them."""
    whole = FIVE.encode()
    for name in ("a.csv", "a.tsv", "a.json", "a.jsonl", "a.parquet"):
        for cut in range(0, len(whole), 7):
            for content in (whole[:cut], whole[cut:], whole[:cut] + b'\xff\x00"{[' + whole[cut:]):
                with suppress(CircuitdbError):
                    FileTask(write(tmp_path, name, content))
