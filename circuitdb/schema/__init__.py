"""Numbered SQL migrations, and the comments from which docs/schema.md is made."""
