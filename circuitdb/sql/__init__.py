"""Queries of the store itself, one a file."""
