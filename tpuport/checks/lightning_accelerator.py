"""Lightning's Trainer and Fabric, which know the TPUs of torch_xla and no others."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant, is_unpacked
from tpuport.analysis.frameworks import is_lightning_command_line, is_lightning_trainer
from tpuport.analysis.module import Module
from tpuport.draft import Context, Draft, Role
from tpuport.model import Edit, Replace, Rule, SetArgument, Severity

ANSWER = "`tpuport rules TP460` shows a strategy that trains on another accelerator"
MADE = "Lightning makes a trainer of a command line here, and finds no TPU for it"
MADE_ANSWER = (
    "give the trainer a strategy of its own, LightningCLI in `trainer_defaults=`, as `tpuport rules TP460` shows one; "
    "`from_argparse_args` is gone since Lightning 2"
)
OLD = ("gpus", "tpu_cores", "num_gpus", "distributed_backend")
"""Arguments that Lightning 2 took out."""

MIXED = ("16-mixed", "bf16-mixed", "16", "bf16", 16)
"""Precisions by autocast, which Lightning has for CUDA and the CPU: float16 is bfloat16 on a TPU."""

FULL = ("32-true", "32", 32, "64-true", "64", 64, "bf16-true")
"""Precisions that are the same on every device."""


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every Trainer and Fabric that leaves the device to Lightning, or asks it for a GPU."""
    module = context.module
    for call in module.of_type(ast.Call):
        name = module.callee(call)
        if is_lightning_command_line(name):
            yield Draft(rule, call, Role.NEUTRAL, message=MADE, reason=MADE_ANSWER, severity=Severity.WARNING)
        if not is_lightning_trainer(name) or is_constant(argument(call, None, "accelerator"), "cpu"):
            continue
        value = argument(call, None, "accelerator")
        brings = isinstance(argument(call, None, "strategy"), ast.Call)
        if brings and not is_constant(value, "gpu", "cuda"):  # the strategy may bring its accelerator with it
            if isinstance(value, ast.IfExp):
                yield Draft(rule, value.body, Role.CUDA_ONLY)
            continue
        old = next((k for k in call.keywords if k.arg in OLD and not is_constant(k.value, None, 0)), None)
        if old is not None:
            message = f"`{old.arg}` is gone since Lightning 2"
            yield Draft(rule, old.value, Role.NEUTRAL, message=message, reason=ANSWER)
        elif is_constant(value, "gpu", "cuda"):
            assert value is not None
            yield _settled(module, Draft(rule, value, Role.NEUTRAL), call, name)
        elif (value is None and not is_unpacked(call)) or is_constant(value, "auto"):
            message = "Lightning takes the CPU of a TPU host"
            draft = Draft(rule, value or call, Role.NEUTRAL, message=message, severity=Severity.WARNING)
            yield _settled(module, draft, call, name)
        elif isinstance(value, ast.Attribute | ast.Subscript | ast.IfExp):
            message = "Lightning has no name for a TPU of torch_tpu"
            yield Draft(rule, value, Role.NEUTRAL, message=message, reason=ANSWER, severity=Severity.WARNING)
            if isinstance(value, ast.IfExp) and is_constant(value.body, "gpu", "cuda"):
                yield Draft(rule, value.body, Role.CUDA_ONLY, severity=Severity.INFO)


def gets_strategy(module: Module, call: ast.Call) -> bool:
    """Whether a strategy is written for a Trainer or Fabric, or one that brings mixed precision is there already."""
    strategy = argument(call, None, "strategy")
    if isinstance(strategy, ast.Call) and isinstance(strategy.func, ast.Name):
        made = (node for node in module.of_type(ast.FunctionDef) if node.name == strategy.func.id)
        return any("MixedPrecision(" in module.text(node) for node in made)
    value = argument(call, None, "accelerator")
    asked = is_constant(value, "gpu", "cuda", "auto") or value is None
    old = any(keyword.arg in OLD and not is_constant(keyword.value, None, 0) for keyword in call.keywords)
    return asked and not old and not _doubt(call, module.callee(call))


def _settled(module: Module, draft: Draft, call: ast.Call, name: str) -> Draft:
    """The draft with the edits that give the call a strategy, or with the reason why it gets none."""
    doubt = _doubt(call, name)
    if doubt:
        draft.reason = f"{doubt}; {ANSWER}"
        return draft
    kind = "fabric" if name.endswith(".Fabric") else "trainer"
    mixed = "mixed_" if is_constant(argument(call, None, "precision"), *MIXED) else ""
    edits: list[Edit] = [SetArgument(module.span(call), "strategy", f"{{{kind}_{mixed}strategy}}()")]
    if is_constant(draft.node, "gpu", "cuda"):
        span = module.span(draft.node)
        edits.append(Replace(span, '{0} if torch.cuda.is_available() else "auto"', (span,)))
    draft.edits, draft.role = tuple(edits), Role.MOVES
    return draft


def _doubt(call: ast.Call, name: str) -> str:
    """Why a strategy for one device may not do what the call asks for; empty if it does."""
    if not name.startswith("lightning."):
        return "releases before Lightning 2, which this import may be of, take other strategies"
    if is_unpacked(call) or call.args:
        return "not all its arguments are named here"
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    allowed = {"devices": (1, "auto"), "strategy": ("auto",), "num_nodes": (1,), "precision": (None, *FULL, *MIXED)}
    other = next((arg for arg, values in allowed.items() if arg in given and not is_constant(given[arg], *values)), "")
    if "plugins" in given and not is_constant(given["plugins"], None):
        other = "plugins"
    return f"what becomes of `{other}` there is not sure" if other else ""
