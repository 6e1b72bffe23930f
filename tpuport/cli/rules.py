"""`tpuport rules`."""


def rules() -> None:
    """Not written yet."""
    raise NotImplementedError
