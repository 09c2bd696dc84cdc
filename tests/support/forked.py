"""A process that loads a model once and then runs ingests, shards and merges in forks of itself, to be killed."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Self


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit status as `os.waitstatus_to_exitcode` gives it, and how long it took."""

    code: int
    seconds: float


class Server:
    """Runs `ingest DB`, `work FOLDER I/N`, `merge DB FOLDER` on a tiny model, each in a fork."""

    def __init__(self, folder: Path, work: Path) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = Popen(
            [sys.executable, __file__, str(folder), str(work)], stdin=PIPE, stdout=PIPE, text=True, env=environment
        )
        self._line()  # the model is loaded

    def run(self, *command: str, kill_after: float | None = None) -> Ended:
        """Run one command, and kill it after so many seconds if it is not done by then."""
        assert self._process.stdin is not None
        start = time.monotonic()
        self._process.stdin.write("\t".join(command) + "\n")
        self._process.stdin.flush()
        pid = int(self._line())
        if kill_after is not None:
            time.sleep(max(0.0, kill_after - (time.monotonic() - start)))
            os.kill(pid, signal.SIGKILL)  # a process that has ended is not waited for before, and keeps its number
        self._tell()
        return Ended(int(self._line()), time.monotonic() - start)

    def _tell(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("wait\n")
        self._process.stdin.flush()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the server has ended"
        return line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.kill()
        self._process.communicate()


def _serve(folder: str, work_file: str) -> None:
    import torch

    from circuitdb.ingest import ingest, load_model
    from circuitdb.ingest.work import WorkList, read_shard, score_shard
    from circuitdb.merging import merge
    from circuitdb.store import Store

    torch.set_num_threads(1)
    model, work = load_model(folder), WorkList.read(work_file)
    _say("loaded")
    for line in sys.stdin:
        command = line.rstrip("\n").split("\t")
        pid = os.fork()
        if pid == 0:
            if command[0] == "ingest":
                outcomes = ingest(Store(command[1]), model, work.task.make(), work.options)
                done = all(outcome.status != "failed" for outcome in outcomes)
            elif command[0] == "work":
                outcomes = score_shard(work, read_shard(command[2]), command[1], model=model)
                done = all(outcome.status != "failed" for outcome in outcomes)
            else:
                done = all(one.status != "refused" for one in merge(Store(command[1]), command[2:]))
            os._exit(0 if done else 3)
        _say(pid)
        sys.stdin.readline()  # only when the run may no longer be killed is it waited for
        _say(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _serve(*sys.argv[1:])
