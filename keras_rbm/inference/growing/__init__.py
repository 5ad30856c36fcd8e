"""A growing hidden layer: the step that searches, fits and validates a new unit."""
