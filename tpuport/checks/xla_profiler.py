"""The profiler of PyTorch/XLA: spans that have names, traces, and the server that is asked for them."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument
from tpuport.analysis.xla import only_takes
from tpuport.draft import Context, Draft, Role
from tpuport.model import RemoveStatement, Replace, Rule

_PROFILER = "torch_xla.debug.profiler"
TRACES = (f"{_PROFILER}.Trace", f"{_PROFILER}.StepTrace")
SERVER = f"{_PROFILER}.start_server"
_CAPTURE = "`torch.profiler.profile(on_trace_ready=torch.profiler.tensorboard_trace_handler(folder))` around some steps"
ANSWERS = {
    SERVER: _CAPTURE,
    **{f"{_PROFILER}.{name}": _CAPTURE for name in ("trace", "trace_detached", "start_trace", "stop_trace")},
    f"{_PROFILER}.trace_me": "`torch.profiler.record_function(name)` as a decorator",
}


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every use: names of spans move, and a server that nothing asks goes."""
    module = context.module
    for use in context.xla.of(*TRACES, *ANSWERS):
        call = module.call_of(use.node)
        message = rule.message.replace("{name}", use.name)
        if call is not None and use.name in TRACES and only_takes(call, 1, "name", "step_num"):
            name = argument(call, 0, "name")
            if name is not None:
                edit = Replace(module.span(call), "torch.profiler.record_function({0})", (module.span(name),))
                yield Draft(rule, call, Role.MOVES, (edit,), message)
                continue
        if call is not None and use.name == SERVER and _is_unread(context, call):
            edits = (RemoveStatement(module.span(module.statement(call))),)
            yield Draft(rule, call, Role.MOVES, edits, message)
            continue
        reason = ANSWERS.get(use.name, "`torch.profiler.record_function(name)` names a span")
        yield Draft(rule, call or use.node, Role.BLOCKS, message=message, reason=reason)


def _is_unread(context: Context, call: ast.Call) -> bool:
    """Whether nothing is done with the server: its statement is the call, or keeps it under a name that goes unread."""
    module = context.module
    statement = module.statement(call)
    if module.is_bare(call):
        return True
    if not isinstance(statement, ast.Assign) or statement.value is not call or len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    return isinstance(target, ast.Name) and not any(
        isinstance(node, ast.Name) and node.id == target.id and isinstance(node.ctx, ast.Load) for node in module.nodes
    )
