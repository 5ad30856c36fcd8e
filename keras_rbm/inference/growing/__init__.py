"""Search, evaluation and refitting of hidden units, for models that grow."""
