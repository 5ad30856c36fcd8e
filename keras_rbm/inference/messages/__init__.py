"""Inference by messages and mean field: beliefs of a model's units."""
