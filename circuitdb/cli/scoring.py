"""The options of commands that load models and score: each defined once."""

from __future__ import annotations

from typing import Annotated

import typer

Method = Annotated[
    str, typer.Option("--method", metavar="NAME", help="eap-ig, eap, clean-corrupted, eap-ig-activations or exact.")
]
Metric = Annotated[
    str,
    typer.Option("--metric", metavar="NAME", help="kl, logit-difference, prob-difference, nll or kl-published."),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the questions.")]
Dtype = Annotated[str, typer.Option("--dtype", metavar="TYPE", help="float32, tf32, bfloat16, float16 or float64.")]
Device = Annotated[str | None, typer.Option("--device", metavar="NAME", help="cpu, cuda, mps, auto (several GPUs).")]
BatchSize = Annotated[int | None, typer.Option("--batch-size", metavar="N", help="Prompts in a pass; what fits.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Score nothing: tell pairs, memory, disk and, from a probe, time.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")]
