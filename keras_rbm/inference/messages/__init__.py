"""Inference by messages and mean field: beliefs of binary models."""
