"""Kill -9 at random moments of an ingest, of a worker and of a merge: nothing is lost, nothing is left by half."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import tiny_models
from circuitdb.connection import reading
from circuitdb.doctor import examine
from circuitdb.ingest import Options, load_model
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.ingest.work import ModelSource, TaskSource, work_list
from forked import Server

OPTIONS = Options(n_examples=6, shots=1, steps=2)
TIMES = [pytest.param(6), pytest.param(100, marks=pytest.mark.slow)]


@dataclass(frozen=True)
class Bench:
    """A server, the digests of an ingest that nobody killed, how long each command takes, and the worker's folder."""

    server: Server
    wanted: dict[str, str]
    seconds: dict[str, float]
    shard: Path


def digests(path: Path) -> dict[str, str]:
    """Spec digest to score digest of every circuit."""
    with reading(path) as connection:
        return dict(connection.execute("SELECT spec_digest, score_digest FROM circuit").fetchall())


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The server, and a first run of each command."""
    folder = tmp_path_factory.mktemp("kills")
    source = str(tiny_models.llama_folder(folder / "tiny", tiny_models.digit_tokenizer()))
    model, task = load_model(source), TaskSource("addition", ("digits=1-2",))
    assert isinstance(task.make(), Addition)
    work_list(model, ModelSource.of(source, None, model), task, OPTIONS, {})[0].write(folder / "plan.json")
    with Server(Path(source), folder / "plan.json") as server:
        seconds = {}
        for name, command in (
            ("ingest", ["ingest", str(folder / "plain.duckdb")]),
            ("work", ["work", str(folder / "shard"), "1/1"]),
            ("merge", ["merge", str(folder / "merged.duckdb"), str(folder / "shard")]),
        ):
            ended = server.run(*command)
            assert ended.code == 0
            seconds[name] = ended.seconds
        wanted = digests(folder / "plain.duckdb")
        assert len(wanted) == 4
        assert digests(folder / "merged.duckdb") == wanted
        yield Bench(server, wanted, seconds, folder / "shard")


@pytest.mark.parametrize("n_kills", TIMES)
@pytest.mark.parametrize("kind", ["ingest", "merge"])
def test_what_writes_to_the_database(kind: str, n_kills: int, bench: Bench, tmp_path: Path) -> None:
    rng = np.random.default_rng(n_kills)
    at_work, n_stored = 0, set()
    for i in range(n_kills):
        path = tmp_path / f"{i}.duckdb"
        command = [kind, str(path), *([str(bench.shard)] if kind == "merge" else [])]
        ended = bench.server.run(*command, kill_after=float(rng.uniform(0, 1.1 * bench.seconds[kind])))
        assert ended.code in (0, -signal.SIGKILL)
        at_work += ended.code != 0
        if path.exists():
            after = examine(path, every=True)
            assert after.healthy, after.findings
            found = digests(path) if after.findings[1].status == "ok" else {}
            assert found.items() <= bench.wanted.items()
            n_stored.add(len(found))
        assert bench.server.run(*command).code == 0
        assert digests(path) == bench.wanted
        whole = examine(path, every=True)
        assert whole.healthy, whole.findings
        for file in tmp_path.glob(f"{i}.duckdb*"):
            file.unlink()
    assert at_work >= n_kills // 2
    assert len(n_stored) >= (4 if n_kills > 50 else 2)


@pytest.mark.parametrize("n_kills", TIMES)
def test_a_worker(n_kills: int, bench: Bench, tmp_path: Path) -> None:
    rng = np.random.default_rng(n_kills)
    at_work = 0
    for i in range(n_kills):
        folder, path = tmp_path / f"shard {i}", tmp_path / f"{i}.duckdb"
        ended = bench.server.run(
            "work", str(folder), "1/1", kill_after=float(rng.uniform(0, 1.1 * bench.seconds["work"]))
        )
        at_work += ended.code == -signal.SIGKILL
        if any(folder.glob("*.json")) or any(folder.glob("*.parquet")):
            # Of a shard that is not whole, what is there goes in.
            assert bench.server.run("merge", str(path), str(folder)).code == (3 if ended.code else 0)
            assert digests(path).items() <= bench.wanted.items()
            assert len(digests(path)) == len(list(folder.glob("*.parquet")))
        assert bench.server.run("work", str(folder), "1/1").code == 0
        assert bench.server.run("merge", str(path), str(folder)).code == 0
        assert digests(path) == bench.wanted
        whole = examine(path, every=True)
        assert whole.healthy, whole.findings
        assert not list(folder.glob(".*"))
        path.unlink()
    assert at_work >= n_kills // 2
