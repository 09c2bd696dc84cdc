"""Evaluations that others made: read from their files into rows, and written beside the circuits."""
