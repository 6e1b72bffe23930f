"""`tpuport migrate`."""


def migrate() -> None:
    """Not written yet."""
    raise NotImplementedError
