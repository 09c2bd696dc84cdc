"""Other tools' files: read into the store, and written from it. Only .pt files need torch."""
