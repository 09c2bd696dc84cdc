"""Widgets that several screens use; they know nothing of the database."""
