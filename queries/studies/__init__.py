"""Studies: the questions of Sun (2025) about a task, answered from the circuits in a database, without a model."""
