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


def check_title(title):
    """Raises a TypeError unless a title is a str or `None`."""
    if title is not None and not isinstance(title, str):
        raise TypeError(
            f"Expected title as a str or None. Received: {type(title).__name__}."
        )
