"""Parts of screens: each shows one side of a circuit, or of two, and asks the database only for what it lacks."""
