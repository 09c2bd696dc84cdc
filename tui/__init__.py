"""The terminal UI: screens that show what the query layer answers."""
