"""Operators that torch_tpu has no kernel for: they raise on a TPU."""

import ast
from collections.abc import Iterator

from tpuport.analysis.steps import imports_torch, in_forward
from tpuport.draft import Context, Draft, Role
from tpuport.model import Rule, Severity

FUNCTIONS = frozenset(
    f"torch.{name}"
    for name in (
        "copysign", "logaddexp", "nansum", "nanmedian", "kthvalue", "std_mean", "i0", "sinc", "hypot", "cross",
        "median", "mode", "histogram", "logspace", "poisson", "renorm", "det", "slogdet", "matrix_exp",
        "cholesky", "rrelu", "quantize_per_tensor", "fake_quantize_per_channel_affine", "special.bessel_j0",
        "special.zeta", "special.i0", "special.sinc", "linalg.slogdet", "linalg.det", "linalg.eigvalsh",
        "linalg.eigh", "linalg.eigvals", "linalg.eig", "linalg.lstsq", "linalg.cholesky", "linalg.cholesky_ex",
        "linalg.householder_product", "linalg.matrix_exp", "linalg.ldl_factor", "linalg.ldl_factor_ex",
        "linalg.cross", "sparse.softmax", "sparse.mm", "spmm", "distributions.Gamma", "distributions.Dirichlet",
        "distributions.Beta", "distributions.MultivariateNormal", "nn.functional.mish",
        "nn.functional.smooth_l1_loss", "nn.functional.huber_loss", "nn.functional.multilabel_margin_loss",
        "nn.functional.multi_margin_loss", "nn.functional.rrelu", "nn.functional.max_unpool2d",
        "nn.functional.fractional_max_pool2d", "nn.functional.adaptive_max_pool2d", "nn.Mish",
        "nn.SmoothL1Loss", "nn.HuberLoss", "nn.MultiLabelMarginLoss", "nn.MultiMarginLoss", "nn.RReLU",
        "nn.MaxUnpool2d", "nn.FractionalMaxPool2d", "nn.AdaptiveMaxPool2d", "nn.utils.weight_norm",
        "nn.utils.parametrizations.weight_norm",
    )
)  # fmt: skip
"""By their full names; each raised in a run on torch_tpu, forward or backward, and ran on CPU."""

INSTEAD = {
    "copysign": "torch.where(b < 0, -a.abs(), a.abs())",
    "huber_loss": "torch.where(d < 1, 0.5 * d * d, d - 0.5).mean() with d = (a - b).abs()",
    "hypot": "(a * a + b * b).sqrt()",
    "kthvalue": "torch.sort(a, dim=0).values.select(0, k - 1)",
    "linalg_cross": "a.roll(-1, -1) * b.roll(-2, -1) - a.roll(-2, -1) * b.roll(-1, -1)",
    "logaddexp": "torch.logsumexp(torch.stack([a, b]), 0)",
    "logspace": "10 ** torch.linspace(start, end, steps)",
    "median": "torch.sort(a.flatten()).values[(a.numel() - 1) // 2]",
    "mish": "a * torch.tanh(torch.nn.functional.softplus(a))",
    "nansum": "torch.where(a.isnan(), 0, a).sum()",
    "sinc": "torch.where(a == 0, 1, torch.sin(math.pi * a) / (math.pi * a))",
    "smooth_l1_loss": "torch.where(d < 1, 0.5 * d * d, d - 0.5).mean() with d = (a - b).abs()",
    "std_mean": "torch.std(a), torch.mean(a)",
}
"""What to write in place of an operator, by its name in aten, with its usual arguments.

Each ran on torch_tpu 0.2.0 and gave what the operator gives on the CPU.
"""

_CLASSES = {"nn.HuberLoss": "huber_loss", "nn.Mish": "mish", "nn.SmoothL1Loss": "smooth_l1_loss"}
"""Classes of torch.nn, with the operator of INSTEAD that each calls."""

METHODS = frozenset(
    ("copysign", "logaddexp", "nansum", "nanmedian", "kthvalue", "slogdet", "matrix_exp", "renorm", "log_normal_",
     "geometric_", "cauchy_", "to_sparse", "to_sparse_csr", "to_mkldnn")
)  # fmt: skip
"""Names that only tensors have as methods."""

MODES = {"bilinear": "antialias", "trilinear": "", "linear": ""}
"""Modes of `interpolate` that have no kernel, with the argument that has to be true for it."""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every such operator: a warning where it is sure to run on the accelerator, else for information."""
    module = context.module
    for use in module.uses_of(FUNCTIONS):
        if module.call_of(use.node) is not None:
            yield _draft(context, rule, use.node, use.name)
    if not imports_torch(module):
        return
    for name in METHODS & module.calls_by_method.keys():
        for call in module.calls_by_method[name]:
            if not module.qualified(call.func) and in_forward(module, call):
                yield _draft(context, rule, call, f"Tensor.{name}")
    for call in module.calls_by_method.get("interpolate", []):
        if module.callee(call) == "torch.nn.functional.interpolate" and (mode := _mode(call)):
            yield _draft(context, rule, call, f'{module.callee(call)}(mode="{mode}")')


def _draft(context: Context, rule: Rule, node: ast.expr, name: str) -> Draft:
    certain = name.startswith("torch.nn.") or in_forward(context.module, node)
    severity = rule.severity if certain else Severity.INFO
    message = rule.message.replace("this operator", f"`{name}`")
    if instead := INSTEAD.get(_operator(name)):
        message += f": write `{instead}`"
    return Draft(rule, node, Role.NEUTRAL, message=message, severity=severity)


def _operator(name: str) -> str:
    """The name in aten of a function of torch, of a method of tensors, or of a class of torch.nn."""
    name = name.removeprefix("torch.").removeprefix("Tensor.").removeprefix("nn.functional.")
    return _CLASSES.get(name, name.replace(".", "_"))


def _mode(call: ast.Call) -> str:
    values = {keyword.arg: keyword.value.value for keyword in call.keywords if isinstance(keyword.value, ast.Constant)}
    mode = values.get("mode")
    if not isinstance(mode, str) or mode not in MODES:
        return ""
    needed = MODES[mode]
    return mode if not needed or values.get(needed) is True else ""
