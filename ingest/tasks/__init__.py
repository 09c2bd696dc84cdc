"""Tasks: one file each, which makes the examples of a partition's subtasks."""
