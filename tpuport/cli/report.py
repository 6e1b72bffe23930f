"""`tpuport report`."""


def report() -> None:
    """Not written yet."""
    raise NotImplementedError
