from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from terminals import MAIN, Cli, environment, run

_PATIENCE_S = 60


class Terminal:
    """`circuitdb tui` in a terminal of 80 x 24."""

    def __init__(self, arguments: list[str], folder: Path, code: str) -> None:
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(theirs)
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "tui", *arguments],
            cwd=folder,
            env=environment(TERM="xterm-256color"),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        self.theirs = theirs
        self.got = b""

    def read(self, wanted: str) -> str:
        """All it wrote, once that has this text."""
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            if select.select([self.ours], [], [], 0.05)[0]:
                self.got += os.read(self.ours, 1 << 16)
            text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", self.got).decode(errors="replace")
            if wanted in text:
                return text
        raise AssertionError(f"{wanted!r} is not in {self.got[-2000:]!r}")

    def end(self) -> int:
        """The exit code, after all that it wrote."""
        end = time.monotonic() + _PATIENCE_S
        while self.process.poll() is None and time.monotonic() < end:
            if select.select([self.ours], [], [], 0.05)[0]:
                self.got += os.read(self.ours, 1 << 16)
        while select.select([self.ours], [], [], 0.05)[0]:
            self.got += os.read(self.ours, 1 << 16)
        return self.process.wait(timeout=1)

    @property
    def clean(self) -> bool:
        """Whether the terminal is as it was: its modes, the main screen, a cursor."""
        back = self.got.rfind(b"\x1b[?1049l") > self.got.rfind(b"\x1b[?1049h")
        seen = self.got.rfind(b"\x1b[?25h") > self.got.rfind(b"\x1b[?25l")
        no_mouse = self.got.rfind(b"\x1b[?1003l") > self.got.rfind(b"\x1b[?1003h")
        return back and seen and no_mouse and termios.tcgetattr(self.theirs) == self.before


@contextmanager
def in_terminal(*arguments: str, folder: Path, code: str = MAIN) -> Iterator[Terminal]:
    terminal = Terminal(list(arguments), folder, code)
    try:
        yield terminal
    finally:
        if terminal.process.poll() is None:
            terminal.process.kill()
            terminal.process.wait(timeout=10)
        os.close(terminal.ours)
        os.close(terminal.theirs)


def test_without_a_terminal_it_tells_what_to_do_instead(cli: Cli, shared_store: Path, tmp_path: Path) -> None:
    done = cli("tui", "--db", "my circuits.duckdb")
    assert (done.code, done.out) == (2, "")
    instead = "`circuitdb circuits --db 'my circuits.duckdb'` lists the circuits as text."
    assert done.err == f"Error: The browser needs a terminal; {instead}\n"
    listed = run(["circuits", "--db", str(shared_store)], tmp_path)
    assert listed.returncode == 0
    assert "1+1" in listed.stdout


@pytest.mark.parametrize("keys", [b"q", b"/abc\x11"], ids=["q", "ctrl+q within the filter"])
def test_it_opens_and_leaves_the_terminal_as_it_was(shared_store: Path, tmp_path: Path, keys: bytes) -> None:
    with in_terminal("--db", str(shared_store), folder=tmp_path) as terminal:
        terminal.read("9 of 9 chosen")
        os.write(terminal.ours, keys)
        assert terminal.end() == 0
        assert terminal.clean


def test_a_question_that_runs_does_not_spoil_the_end(shared_store: Path, tmp_path: Path) -> None:
    # It comes back from DuckDB again and again, at last into an interpreter that is being taken down.
    slow = (
        "import duckdb, circuitdb.tui.summary as s\n"
        "def ask(*a, **k):\n"
        "    connection = duckdb.connect()\n"
        "    while True: connection.execute('SELECT count(*) FROM range(100000)').fetchall()\n"
        "s.summarise = ask\n"
    ) + MAIN
    with in_terminal("--db", str(shared_store), folder=tmp_path, code=slow) as terminal:
        terminal.read("9 of 9 chosen")
        time.sleep(1)  # the summary is asked for a little later
        os.write(terminal.ours, b"q")
        begun = time.monotonic()
        assert terminal.end() == 0
        assert time.monotonic() - begun < 50
        assert terminal.clean


def test_a_missing_file_is_a_screen(tmp_path: Path) -> None:
    with in_terminal("--db", "none.duckdb", folder=tmp_path) as terminal:
        terminal.read("Waiting for the database")
        os.write(terminal.ours, b"q")
        assert terminal.end() == 0


@contextmanager
def served(store: Path, folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "tui", "--web", "--port", str(port), "--db", str(store)],
        cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"The browser is at http://127.0.0.1:{port}; Ctrl-C ends it.\n"
        for _ in range(600):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield process, port
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def test_the_web_serves_this_computer_alone(shared_store: Path, tmp_path: Path) -> None:
    with served(shared_store, tmp_path) as (process, port):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as page:
            assert page.status == 200
            assert "textual-terminal" in page.read().decode()
            assert "default-src 'self'" in page.headers["Content-Security-Policy"]
        for header, value in (("Origin", "https://example.org"), ("Host", f"example.org:{port}")):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/ws", headers={header: value}))
            assert refused.value.code == 403
            refused.value.close()
        listening = _listening(process.pid, port)
        assert listening == {"0100007F"}  # 127.0.0.1, as /proc writes it
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0


@pytest.mark.anyio
async def test_the_web_shows_the_library(shared_store: Path, tmp_path: Path) -> None:
    import aiohttp

    with served(shared_store, tmp_path) as (_, port):
        address = f"ws://127.0.0.1:{port}/ws?width=100&height=30"
        got = b""
        async with aiohttp.ClientSession() as session, session.ws_connect(address) as socket_:
            while b"chosen" not in got or b"addition" not in got:
                message = await socket_.receive(timeout=_PATIENCE_S)
                assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT)
                got += message.data if isinstance(message.data, bytes) else b""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def _listening(pid: int, port: int) -> set[str]:
    """The addresses that the port is open on, of all processes of the machine."""
    rows = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    found = [line.split() for line in rows]
    return {row[1].split(":")[0] for row in found if row[3] == "0A" and int(row[1].split(":")[1], 16) == port}
