"""The three case studies of Sun (2025): what each of them ingests, and the run over conditions and models."""
