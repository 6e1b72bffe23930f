"""`tpuport doctor`."""


def doctor() -> None:
    """Not written yet."""
    raise NotImplementedError
