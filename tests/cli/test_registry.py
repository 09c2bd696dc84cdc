"""Tasks that users add: from Python, and from installed packages."""

from __future__ import annotations

import doctest
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tiny_models
from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.ingest import Options, ingest, load_model
from circuitdb.ingest.tasks import registry
from circuitdb.ingest.tasks.addition import Addition, read_number
from circuitdb.ingest.tasks.partition import Numbers
from circuitdb.ingest.tasks.task import Question
from circuitdb.records import Subtask
from circuitdb.store import Store

if TYPE_CHECKING:
    from terminals import Cli

DOUBLING = """
from circuitdb.ingest import Question
from circuitdb.ingest.tasks.partition import Numbers
from circuitdb.ingest.tasks.registry import Registered
from circuitdb.records import Subtask

DIGITS = Numbers("digits", "Digits of the number.", 1, 3, "1")


class Doubling:
    name = "{name}"
    description = "A number and itself."

    def __init__(self, digits):
        self.digits = digits

    def subtasks(self):
        return [Subtask(self.name, str(n), {{"digits": n}}) for n in self.digits]

    def questions(self, subtask, n, seed):
        first = 10 ** (subtask.parameters["digits"] - 1)
        return [Question(f"{{a}} + {{a}} =", str(a + a)) for a in range(first, min(10 * first, first + n))]

    def read_answer(self, text):
        return text.split()[0] if text.split() else None


TASK = Registered(lambda options: Doubling(DIGITS.chosen(options)), (DIGITS,))
"""
Install = Callable[..., None]


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    """What a test registers is gone after it."""
    before = dict(registry.TASKS)
    yield
    registry.TASKS.clear()
    registry.TASKS.update(before)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """`install(package, name, code, value)` installs a package that offers a task."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(package: str, name: str, code: str, value: str = "TASK") -> None:
        module = package.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(code)
        about = tmp_path / f"{module}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[circuitdb.tasks]\n{name} = {module}:{value}\n")

    return put


class Halves:
    """The halves of even numbers, in one cell."""

    name = "halves"
    description = "Half of a number."

    def subtasks(self) -> list[Subtask]:
        return [Subtask(self.name, "all")]

    def questions(self, subtask: Subtask, n: int, seed: int) -> list[Question]:
        return [Question(f"{a} = {a // 2} +", str(a // 2)) for a in range(20, min(40, 20 + 2 * n), 2)]

    def read_answer(self, text: str) -> str | None:
        return read_number(text)


def test_a_registered_task_is_scored(tmp_path: Path) -> None:
    model = load_model(tiny_models.llama_folder(tmp_path / "tiny", tiny_models.digit_tokenizer()))
    registry.register("halves", lambda _: Halves(), reader=read_number)
    task = registry.find("halves", {})
    (outcome,) = ingest(Store(tmp_path / "c.duckdb"), model, task, Options(n_examples=4, shots=1, steps=2))
    assert (outcome.subtask, outcome.status, outcome.n_examples) == ("all", "stored", 4)
    with reading(tmp_path / "c.duckdb") as connection:
        assert connection.execute("SELECT task, subtask FROM circuits").fetchall() == [("halves", "all")]
    assert registry.readers(["halves", "addition", "greater-than", "no such"]) == {
        "halves": read_number, "addition": read_number
    }  # fmt: skip
    assert registry.names()[-1] == "halves"


def test_the_options_of_a_registered_task_are_checked() -> None:
    digits = Numbers("digits", "Digits.", 1, 3, "1")
    registry.register("sums", lambda options: Addition(digits.chosen(options), name="sums"), [digits])
    assert [s.name for s in registry.find("sums", {"digits": "1-2"}).subtasks()] == ["1+1", "1+2", "2+1", "2+2"]
    with pytest.raises(UsageError, match=r"The partition of sums has no 'digit'; did you mean digits\?"):
        registry.find("sums", {"digit": "1"})
    registry.register("plain", lambda _: Addition((1,), name="plain"))
    with pytest.raises(UsageError, match=r"The partition of plain has no 'x'; it has no options"):
        registry.find("plain", {"x": "1"})


@pytest.mark.parametrize("name", ["", "my task", "my.csv", "a/b", "1st", "-a", 3, None])
def test_odd_names_are_refused(name: object) -> None:
    with pytest.raises(UsageError, match=r"A task is called by letters, digits, - and _, a letter first, not "):
        registry.register(name, lambda _: Halves())  # type: ignore[arg-type]


def test_a_name_is_taken_once() -> None:
    with pytest.raises(UsageError, match=r"There is a task addition already; give yours another name\."):
        registry.register("addition", lambda _: Halves())
    registry.register("halves", lambda _: Halves())
    with pytest.raises(UsageError, match=r"There is a task halves already"):
        registry.register("halves", lambda _: Halves())


def test_parts_of_the_wrong_kind() -> None:
    with pytest.raises(UsageError, match=r"What makes the task halves must be a function of its options, not "):
        registry.register("halves", Halves())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"The options of the task halves must be a tuple of Numbers and Words\."):
        registry.register("halves", lambda _: Halves(), ["digits"])  # type: ignore[list-item]
    with pytest.raises(
        UsageError, match=r"What reads the answers of the task halves must be a function of a text, not "
    ):
        registry.register("halves", lambda _: Halves(), reader="first")  # type: ignore[arg-type]
    registry.register("quarters", lambda _: Halves())
    with pytest.raises(UsageError, match=r"The task quarters calls itself 'halves'; both names must be the same\."):
        registry.find("quarters", {})


def _raising(*_: object) -> object:
    raise ValueError("no\nluck")


@pytest.mark.parametrize(
    ("subtasks", "questions", "message"),
    [
        (_raising, list, "The task odd can't give its subtasks: ValueError: no luck"),
        (lambda: None, list, "The task odd can't give its subtasks: TypeError: 'NoneType' object is not iterable"),
        (lambda: ["a"], list, "The task odd gives 'a' among its subtasks; each must be a Subtask."),
        (list, list, "The task odd has no subtasks; its partition needs one at least."),
        (lambda: [Subtask("odd", 5)], list, "The task odd calls a subtask 5; its name must be a text."),  # type: ignore[arg-type]
        (lambda: [Subtask("odd", "a")] * 2, list, "The task odd has two subtasks a; give each a name of its own."),
        (None, _raising, "The task odd can't give the questions of a: ValueError: no luck"),
        (None, lambda *_: [("1 =", "1")], "The task odd gives ('1 =', '1') among the questions of a; each must be a"
         " Question."),
        (None, lambda *_: [Question("1 =", 1)],  # type: ignore[arg-type]
         "The task odd gives a question of a whose answer is 1; it must be a text."),
        (None, lambda *_: [Question(1, "1")],  # type: ignore[arg-type]
         "The task odd gives a question of a whose prompt is 1; it must be a text."),
    ],
)  # fmt: skip
def test_what_a_task_gives_is_checked(
    subtasks: Callable[..., object] | None, questions: Callable[..., object], message: str, tmp_path: Path
) -> None:
    own = Addition((1,), name="odd")
    kind = type("Odd", (), {
        "name": "odd", "description": "odd", "read_answer": lambda _, text: own.read_answer(text),
        "subtasks": lambda _: [Subtask("odd", "a")] if subtasks is None else subtasks(),
        "questions": lambda _, *asked: questions(*asked),
    })  # fmt: skip
    registry.register("odd", lambda _: kind())
    model = load_model(tiny_models.llama_folder(tmp_path / "model", tiny_models.digit_tokenizer()))
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        ingest(Store(tmp_path / "c.duckdb"), model, registry.find("odd", {}), Options(n_examples=4, shots=0))


def test_a_task_that_can_not_be_made_is_named() -> None:
    registry.register("odd", _raising)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^The task odd can't give its partition: ValueError: no luck$"):
        registry.find("odd", {})


def test_the_example_of_register() -> None:
    example = doctest.DocTestParser().get_doctest(registry.register.__doc__ or "", {}, "register", None, 0)
    assert doctest.DocTestRunner().run(example) == (0, 3)


def test_a_task_of_an_installed_package(install: Install, cli: Cli, tmp_path: Path) -> None:
    install("my-tasks", "doubling", DOUBLING.format(name="doubling"))
    rows = {row["task"]: row for row in cli("tasks").table}
    assert (rows["doubling"]["question"], rows["doubling"]["answer"]) == ("1 + 1 =", "2")
    assert cli("tasks", "doubling").table[0]["allowed"] == "1 to 3; a list such as 1-3 or 1,3"
    folder = tiny_models.llama_folder(tmp_path / "tiny", tiny_models.digit_tokenizer())
    run = cli(
        "ingest", "--model", str(folder), "--db", "c.duckdb", "--task", "doubling", "--digits", "1,2", "--shots", "1",
        "--examples", "6", "--steps", "2",
    )  # fmt: skip
    assert [(row["subtask"], row["status"]) for row in run.table] == [("1", "stored"), ("2", "stored")]
    with pytest.raises(UsageError, match=r"There is a task doubling already"):
        registry.register("doubling", lambda _: Halves())


BROKEN = [
    (
        "import no_such_thing",
        "TASK",
        r"The task odd of the package p can't be imported: No module named 'no_such_thing'",
    ),
    ("TASK = 3", "TASK", r"p:TASK of the package p is no Registered, so it can't be the task odd\."),
    ("TASK = 3", "OTHER", r"The task odd of the package p can't be imported: .*OTHER"),
    (DOUBLING.format(name="even"), "TASK", r"The task odd calls itself 'even'; both names must be the same\."),
]


@pytest.mark.parametrize(("code", "value", "message"), BROKEN, ids=["import", "kind", "name", "own name"])
def test_a_broken_package_is_named(
    install: Install, cli: Cli, code: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(__import__("sys").modules, "p", raising=False)
    install("p", "odd", code, value)
    run = cli("ingest", "--model", "nowhere", "--task", "odd")
    assert (run.code, run.out) == (2, "")
    assert re.search(message, " ".join(run.err.split()))
    assert "Traceback" not in run.err
    assert registry.find("addition", {}).name == "addition"


def test_two_tasks_of_one_name_are_never_guessed_between(install: Install) -> None:
    install("p1", "twice", DOUBLING.format(name="twice"))
    install("p2", "twice", DOUBLING.format(name="twice"))
    install("p3", "addition", DOUBLING.format(name="addition"))
    with pytest.raises(UsageError, match=r"Several tasks are called twice, of the package p\d and the package p\d; "):
        registry.find("twice", {})
    with pytest.raises(
        UsageError,
        match=r"Several tasks are called addition, of circuitdb itself and the package p3; uninstall or rename all but",
    ):
        registry.find("addition", {})


def test_a_package_may_not_offer_an_odd_name(install: Install) -> None:
    install("p4", "my task", DOUBLING.format(name="my task"))
    with pytest.raises(UsageError, match=r"the package p4 calls a task 'my task'; letters, digits, - and _ can be"):
        registry.find("my task", {})
