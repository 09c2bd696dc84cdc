"""One SQL query a file: file name = query name."""
