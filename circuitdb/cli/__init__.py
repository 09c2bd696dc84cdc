"""The command line: one file per command, each of which calls one library function and formats its result."""
