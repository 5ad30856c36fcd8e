"""Which energy of visible states a model has."""


def energy_name(model):
    """Returns the name of the method for F(v), or of its bound for a deep model."""
    bound = "variational_free_energy"
    return bound if hasattr(model, bound) else "free_energy"
