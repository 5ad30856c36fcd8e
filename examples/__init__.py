"""Scripts; those in `papers/` run as modules."""
