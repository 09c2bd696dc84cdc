"""Options of a partition, read from text: each bad one is one sentence that says what is allowed."""

from __future__ import annotations

import pytest

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks import registry
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.ingest.tasks.boolean import Boolean
from circuitdb.ingest.tasks.ioi import Ioi
from circuitdb.ingest.tasks.partition import Numbers, Words

NUMBERS = Numbers("length", "Words.", 3, 9)
SETS = Words("operators", "Sets.", ("not", "not,and"), between="/")


@pytest.mark.parametrize(
    ("text", "found"),
    [("3", (3,)), ("3-5", (3, 4, 5)), ("9,3", (3, 9)), (" 4 , 3-4 ", (3, 4)), ("5,5", (5,))],
)
def test_numbers(text: str, found: tuple[int, ...]) -> None:
    assert NUMBERS.chosen({"length": text}) == found


@pytest.mark.parametrize("text", ["", "2", "3-10", "5-3", "3,,4", "a", "-3", "3-", "3.5", "3-999999999999", "٣"])
def test_bad_numbers(text: str) -> None:
    with pytest.raises(UsageError) as error:
        NUMBERS.chosen({"length": text})
    assert str(error.value) == (f"--partition length={text} is no list of numbers from 3 to 9; write 3-5 or 3,5.")


def test_words() -> None:
    assert SETS.chosen({}) == ("not", "not,and")
    assert SETS.chosen({"operators": "not,and"}) == ("not,and",)
    assert SETS.chosen({"operators": "not,and / not/not"}) == ("not", "not,and")
    with pytest.raises(UsageError) as error:
        SETS.chosen({"operators": "and"})
    assert str(error.value) == "--partition operators=and: there is no 'and'; write one or more of not/not,and."


def test_what_is_given_twice_is_one_list() -> None:
    given = ["operators=not,and", "length=6", "operators=not", "length=8-9"]
    options = registry.read_options("boolean", given)
    assert options == {"operators": "not,and/not", "length": "6,8-9"}
    assert registry.find("boolean", options) == Boolean(("not", "not,and"), (6, 8, 9))


@pytest.mark.parametrize("name", registry.TASKS)
def test_the_default_is_what_the_options_say(name: str) -> None:
    said = {o.name: o.default for o in registry.registered(name).options if o.default is not None}
    if name == "sports":
        said.pop("sports")  # not beside parts, and parts are none by default
    assert registry.find(name, said).subtasks() == registry.find(name, {}).subtasks()
    assert registry.find(name, {}).name == name


def test_found_by_name() -> None:
    assert registry.find("addition", {}) == Addition((1, 2, 3))
    assert registry.find("ioi", {"order": "BABA", "names": "4"}) == Ioi(("BABA",), (4,))


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (
            "sums",
            [],
            "There is no task 'sums'; choose one of addition, arithmetic, boolean, sports, dyck, dates, ioi, ",
        ),
        ("boolean", ["digits=3"], "The partition of boolean has no 'digits'; it has operators, length, parentheses, "),
        ("boolean", ["lenght=3"], "The partition of boolean has no 'lenght'; did you mean length?"),
        ("boolean", ["length"], "--partition length is no NAME=VALUE; `circuitdb tasks boolean` lists the names."),
        ("boolean", ["=3"], "--partition =3 is no NAME=VALUE"),
        ("addition", ["digits=9"], "--digits '9' goes beyond 8 digits."),
        ("addition", ["digits=0"], "Addition is defined for 1 to 8 digits"),
        ("arithmetic", ["operators=+,^"], "--partition operators=+,^: there is no '^'; write one or more of +,-,*,/."),
    ],
)
def test_bad_options_are_one_sentence(name: str, given: list[str], message: str) -> None:
    with pytest.raises(UsageError) as error:
        registry.find(name, registry.read_options(name, given))
    assert message in str(error.value)
