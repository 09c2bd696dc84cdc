"""Tasks in files: readers of each format, which give the same sheet of rows, and the questions made from it."""
