"""`circuitdb faithfulness`: how much of the model does a circuit do on its own?"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from circuitdb.cli import diagnostics, output
from circuitdb.cli.options import Ask, question
from circuitdb.errors import UsageError
from circuitdb.records import SHARES, TOP_SIGNED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from circuitdb.cli.progress import RunProgress
    from circuitdb.ingest import Cuts, LoadedModel

_MATRIX_LABELS = 1


@question()
def faithfulness(
    ask: Ask,
    load: Annotated[
        str | None,
        typer.Option("--load", metavar="NAME", help="Run what was not run yet in this model: name, folder or .gguf."),
    ] = None,
    selection: Annotated[
        str | None, typer.Option("--selection", metavar="NAME", help="top-absolute, or top-signed: what hurts most.")
    ] = None,
    shares: Annotated[
        str | None, typer.Option("--shares", metavar="LIST", help="Sizes to run, as shares of all edges: 0.01,0.1.")
    ] = None,
    across: Annotated[
        bool, typer.Option("--across", help="Run each circuit on the examples of every other one, too.")
    ] = False,
    generate: Annotated[
        bool, typer.Option("--generate", help="Count the right answers that the circuits alone write, too.")
    ] = False,
    at: Annotated[
        float | None, typer.Option("--at", metavar="SHARE", help="The matrix of circuits by data at one size.")
    ] = None,
    long: Annotated[bool, typer.Option("--long", help="One row a run instead of one a curve.")] = False,
    revision: Annotated[str | None, typer.Option(metavar="NAME", help="Hub branch, tag or commit of it.")] = None,
    dtype: Annotated[str, typer.Option(metavar="TYPE", help="Type the circuits were scored in.")] = "float32",
    device: Annotated[str | None, typer.Option(metavar="NAME", help="cpu, cuda, mps; by default the best.")] = None,
    batch_size: Annotated[int | None, typer.Option(metavar="N", help="Pairs in a pass; by default what fits.")] = None,
) -> None:
    """Tell how much of the model a circuit does on its own.

    Each circuit is cut to its strongest edges at several sizes and run in the model with every other edge ablated. 1 is
    the whole model, 0 no edge at all. With --load what was not run yet is run and stored; without it the stored runs
    are shown.

    Example: circuitdb faithfulness --load gpt2 --task addition
    """
    database = ask.database
    found = database.faithfulness(selection=selection, **ask.filters)
    if load is not None:
        sizes = SHARES if shares is None else _shares(shares)
        if at is not None and at not in sizes:
            raise UsageError(f"--at {at:g} is none of the sizes to run; add it to --shares.")
        cuts = _cuts(sizes, signed=selection == TOP_SIGNED, generate=generate)
        with _running(load, revision=revision, dtype=dtype, device=device) as (model, watcher):
            from circuitdb.ingest import run_faithfulness
            from circuitdb.store import Store

            store = Store(ask.path, timeout=ask.timeout)
            run_faithfulness(
                store, model, list(found.labels), cuts, across=across, batch_size=batch_size, watcher=watcher
            )
        found = database.faithfulness(selection=selection, **ask.filters)
    elif shares is not None or across or generate:
        raise UsageError("--shares, --across and --generate say what to run; name the model to run it in with --load.")
    if at is not None:
        output.matrix(found.across(at), ask.form, labels=_MATRIX_LABELS)
    elif long or generate:
        output.answer(found, ask.form)
    else:
        output.answer(found.wide(), ask.form)


def _cuts(shares: Sequence[float], *, signed: bool, generate: bool) -> Cuts:
    """How to cut, refused before a model is loaded."""
    import logging

    # TransformerLens looks for optional parts of itself while it is imported, and says so.
    logging.disable(logging.WARNING)
    from circuitdb.ingest import Cuts

    return Cuts(shares, signed, generate)


@contextmanager
def _running(
    name: str, *, revision: str | None, dtype: str, device: str | None
) -> Iterator[tuple[LoadedModel, RunProgress]]:
    """The model, loaded, and a bar for what is run in it."""
    from circuitdb.cli.progress import RunProgress
    from circuitdb.ingest import load_model

    with RunProgress() as watcher:
        watcher.loading(name)
        model = load_model(name, revision=revision, dtype=dtype, device=device)
        try:
            yield model, watcher
        except KeyboardInterrupt:
            diagnostics.warning("Stopped. What was run is stored; the same command goes on from there.")
            raise


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(sorted({float(part) for part in text.split(",")}))
    except ValueError:
        raise UsageError(f"--shares {text!r} is no list of shares; write 0.01,0.1,1.") from None
