"""The Keras side of every model: data, state, export, chains."""
