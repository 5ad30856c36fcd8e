"""Files of a model: saved state, exported functions."""
