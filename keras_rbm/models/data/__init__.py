"""Data of a model: rows, batches, and what both must be."""
