"""`tpuport profile`."""


def profile() -> None:
    """Not written yet."""
    raise NotImplementedError
