"""What `fit` does around a learning rule: defaults, starts, guards, resumed runs."""
