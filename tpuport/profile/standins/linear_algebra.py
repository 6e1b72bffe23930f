"""What torch_tpu computes by an LU decomposition, for which XLA's CPU backend has no handler."""

from tpuport.profile.standins.operation import ON_CPU, StandIn, on_cpu

OPERATIONS = (
    StandIn("linalg_lu_factor_ex", "torch.linalg.lu_factor", ON_CPU, on_cpu("linalg_lu_factor_ex", in_graphs=True)),
    *(
        StandIn(name, f"torch.linalg.{called}", ON_CPU, on_cpu(name, in_graphs=False))
        for name, called in (
            ("linalg_inv_ex", "inv"),
            ("_linalg_solve_ex", "solve"),
            ("linalg_lu", "lu"),
            ("linalg_lu_solve", "lu_solve"),
            ("lu_unpack", "lu_unpack"),
        )
    ),
)
"""torch_tpu itself can not compile them, but for the decomposition alone: it looks at values on the way."""
