"""`tpuport lint`."""


def lint() -> None:
    """Not written yet."""
    raise NotImplementedError
