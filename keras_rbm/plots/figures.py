"""Figures that belong to nobody else."""


def new_figure(width, height):
    """Returns a matplotlib figure of a size in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Expected the package matplotlib, which draws the pictures. Received: "
            f"{error}. Install it by: pip install keras-rbm[examples]"
        ) from error
    return Figure((width, height), layout="constrained", dpi=150)
