"""The text of a statement as an editor sees it: its colours, its parts, what may come next; free of Textual."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import TokenType, tokenize
from sqlglot.errors import TokenError

_LINE = re.compile(r"^LINE (\d+): (.*)$", re.MULTILINE)
_WORD = re.compile(r"[\w.]*$")
_COMMENT = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_STRING = re.compile(r"'(?:[^']|'')*'?|\"(?:[^\"]|\"\")*\"?")
_NUMBER = re.compile(r"\b\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?\b")
_PIECES = re.compile("|".join(f"(?P<{kind}>{one.pattern})" for kind, one in (
    ("comment", _COMMENT), ("string", _STRING), ("number", _NUMBER), ("word", re.compile(r"[^\W\d]\w*")),
)), re.DOTALL)  # fmt: skip
_MOST = 200  # words that are offered


@dataclass(frozen=True)
class Span:
    """A piece of the text, by its first letter and the one behind its last."""

    start: int
    end: int
    kind: str


def spans(text: str, keywords: frozenset[str], names: frozenset[str]) -> list[Span]:
    """What is to be coloured: comments, strings, numbers, keywords and names of tables and macros (`relation`).

    Unlike sqlglot's tokens also where a string or a comment does not end yet.
    """
    found = []
    for piece in _PIECES.finditer(text):
        kind = piece.lastgroup or ""
        if kind == "word":
            word = piece.group().lower()
            kind = "relation" if word in names else "keyword" if word in keywords else ""
        if kind:
            found.append(Span(piece.start(), piece.end(), kind))
    return found


def statement_at(text: str, place: int) -> str:
    """The statement that a letter is in, of several parted by semicolons; between two, the one before."""
    try:
        tokens = tokenize(text, dialect="duckdb")
    except TokenError:
        return text.strip()
    cuts = [token.start for token in tokens if token.token_type == TokenType.SEMICOLON]
    begins, parts = 0, []
    for cut in [*cuts, len(text)]:
        if any(begins <= token.start < cut for token in tokens):
            parts.append((begins, text[begins:cut]))
        begins = cut + 1
    before = [part for begin, part in parts if begin <= place]
    return (before[-1] if before else parts[0][1] if parts else "").strip()


def place_of(message: str, text: str) -> tuple[int, int] | None:
    """(line, column), from 0, of what an error of DuckDB points at; None where it points at nothing.

    It quotes a part of the line, with dots where it was cut, and points below it.
    """
    found = _LINE.search(message)
    if not found:
        return None
    quoted = found[2]
    bare = quoted.removeprefix("...")
    skipped = len(quoted) - len(bare)
    bare = bare.removesuffix("...")
    below = message[found.end() :].lstrip("\n").split("\n")[0]
    # The caret stands below `LINE 1: ` and the quotation.
    column = len(below) - len(below.lstrip()) - (len(f"LINE {found[1]}: ") + skipped)
    for number, line in enumerate(text.split("\n")):
        if bare.strip() and (at := line.find(bare)) >= 0:
            return number, max(0, min(len(line), at + column))
    return None


@dataclass(frozen=True)
class Word:
    """A word to complete to: what it is, and whose column."""

    text: str
    kind: str
    of: str = ""


@dataclass(frozen=True)
class Vocabulary:
    """All words that a statement may be made of."""

    words: tuple[Word, ...] = ()
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, str | None]]) -> Vocabulary:
        """From the rows of `Database.vocabulary`; a column of several tables is one word."""
        words: list[Word] = []
        columns: dict[str, list[str]] = {}
        owners: dict[str, list[str]] = {}
        for row in rows:
            word, kind = str(row["word"]), str(row["kind"])
            if kind == "column":
                owners.setdefault(word, []).append(str(row["relation"]))
                columns.setdefault(str(row["relation"]).lower(), []).append(word)
            else:
                words.append(Word(word, kind, str(row["parameters"] or "")))
        for word, tables in owners.items():
            words.append(Word(word, "column", tables[0] if len(tables) == 1 else f"{len(tables)} tables"))
        order = {kind: i for i, kind in enumerate(("table", "view", "macro", "column", "keyword", "function"))}
        words.sort(key=lambda word: (order[word.kind], word.text))
        return cls(tuple(words), {name: tuple(found) for name, found in columns.items()})

    @property
    def keywords(self) -> frozenset[str]:
        """DuckDB's keywords, in small letters."""
        return frozenset(word.text.lower() for word in self.words if word.kind == "keyword")

    @property
    def relations(self) -> frozenset[str]:
        """Tables, views and macros, in small letters."""
        return frozenset(word.text.lower() for word in self.words if word.kind in ("table", "view", "macro"))

    def completions(self, text: str, place: int) -> tuple[str, list[Word]]:
        """(what is typed of a word before a letter, words that begin so, the likeliest first).

        Columns of tables that the statement names come before all others; after `name.` only columns of that table or
        alias. None within a string or a comment.
        """
        before = text[:place]
        typed = (_WORD.search(before) or [""])[0]
        at = place - len(typed)
        if any(s.start < at < s.end and s.kind in ("comment", "string") for s in spans(text, frozenset(), frozenset())):
            return "", []
        owner, dot, start = typed.rpartition(".")
        named = self._named(text)
        if dot:
            table = named.get(owner.lower(), owner.lower())
            words = [Word(name, "column", table) for name in self.columns.get(table, ())]
        else:
            near = [Word(c, "column", t) for t in dict.fromkeys(named.values()) for c in self.columns.get(t, ())]
            words = [*dict.fromkeys(near), *self.words]
        low = start.lower()
        fits: dict[str, Word] = {}
        for word in words:
            if word.text.lower().startswith(low) and word.text != start:
                fits.setdefault(word.text, word)
        return start, list(fits.values())[:_MOST]

    def _named(self, text: str) -> dict[str, str]:
        """Names and aliases of the tables behind FROM, JOIN and commas after these: what each stands for."""
        found: dict[str, str] = {}
        pieces = [piece for piece in _PIECES.finditer(text) if piece.lastgroup == "word"]
        words = [piece.group().lower() for piece in pieces]
        listed = -1  # the last word of a list of tables
        for i, name in enumerate(words):
            goes_on = i and listed == i - 1 and "," in text[pieces[i - 1].end() : pieces[i].start()]
            if name not in self.columns or not (words[i - 1 : i] in (["from"], ["join"]) or goes_on):
                continue
            found[name] = name
            after = i + 2 if words[i + 1 : i + 2] == ["as"] else i + 1
            alias = words[after] if after < len(words) else ""
            direct = after < len(words) and not text[pieces[after - 1].end() : pieces[after].start()].strip()
            aliased = direct and alias not in self.keywords and alias not in self.columns
            if aliased:
                found[alias] = name
            listed = after if aliased else i
        return found
