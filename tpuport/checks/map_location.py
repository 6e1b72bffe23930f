"""`torch.load` to CUDA by a function, or with no `map_location` at all."""

import ast
from collections.abc import Iterator

from tpuport.analysis.calls import argument, is_constant, is_unpacked
from tpuport.analysis.module import Module, dotted
from tpuport.draft import Context, Draft, Role
from tpuport.model import Replace, Rule, SetArgument, Severity

NONE_ON_CUDA = "None if torch.cuda.is_available() else {device}"
STAYS = "a `map_location` of None leaves a checkpoint where it was saved, on CUDA"


def check(context: Context, rule: Rule) -> Iterator[Draft]:
    """A draft for every `torch.load` that may ask for CUDA."""
    module = context.module
    for call in module.calls_of("torch.load"):
        if is_unpacked(call):
            continue
        where = argument(call, 1, "map_location")
        if where is None and _other_branch_maps(context, call):
            edit = SetArgument(module.span(call), "map_location", NONE_ON_CUDA)
            message = "on a TPU this branch would load a checkpoint where it was saved, on CUDA"
            yield Draft(rule, call, Role.MOVES, (edit,), message=message)
        elif where is None:
            reason = "a checkpoint saved from CUDA loads only with map_location= on a machine without it"
            yield Draft(rule, call, Role.NEUTRAL, severity=Severity.INFO, reason=reason)
        elif isinstance(where, ast.Lambda) and (moved := _storage_call(where)) is not None:
            span = module.span(where)
            if moved.args or moved.keywords:
                chosen = Replace(span, "{0} if torch.cuda.is_available() else {device}", (span,))
                yield Draft(rule, where, Role.MOVES, (chosen,))
            else:
                yield Draft(rule, where, Role.MOVES, (Replace(span, "{device}"),))
        elif isinstance(where, ast.IfExp) and _is_settled(context, where):
            yield Draft(rule, where.body, Role.CUDA_ONLY)
    if "map_location" not in module.source and not module.calls_of("torch.load"):
        return
    names = _location_names(module)
    for node in module.of_type(ast.Constant):
        if node.value is None and _is_location(module, node, names) and context.guards.cuda_tests(node):
            yield from _left_where_saved(context, rule, node)
    for choice in module.of_type(ast.IfExp):
        for arm, other in ((choice.body, choice.orelse), (choice.orelse, choice.body)):
            if _says_location(other) and not _says_location(arm) and context.guards.cuda_tests(arm):
                yield Draft(rule, arm, Role.BLOCKS, severity=Severity.INFO, message=STAYS)


def _left_where_saved(context: Context, rule: Rule, none: ast.Constant) -> Iterator[Draft]:
    """A `map_location` of None behind a test for CUDA: the test stays, or None is for CUDA where a flag is asked."""
    module = context.module
    choice = module.parents[none]
    tested = choice.test if isinstance(choice, ast.IfExp) and choice.body is none else None
    settled = isinstance(choice, ast.IfExp) and not isinstance(choice.orelse, ast.Constant)
    around = {module.statement(none), *(parent for _, parent in module.ancestors(none))}
    if settled and tested is not None and context.guards.tests_availability(tested):
        yield Draft(rule, none, Role.CUDA_ONLY)
    elif all(module.statement(test) in around for test in context.guards.cuda_tests(none)):
        yield Draft(rule, none, Role.BLOCKS, severity=Severity.INFO, message=STAYS)
    else:
        message = "on a TPU this would load a checkpoint where it was saved, on CUDA"
        yield Draft(rule, none, Role.MOVES, (Replace(module.span(none), NONE_ON_CUDA),), message=message)


def _is_location(module: Module, node: ast.expr, names: set[str]) -> bool:
    """Whether a value goes to a `map_location`: as an argument, or through a variable that is called so or given so."""
    parent = module.parents[node]
    while isinstance(parent, ast.IfExp) and node is not parent.test:
        node, parent = parent, module.parents[parent]
    match parent:
        case ast.keyword(arg="map_location"):
            return True
        case ast.Call(args=[_, second, *_]) if second is node:
            return module.callee(parent) == "torch.load"
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target]):
            return _is_location_name(target, names)
    return False


def _location_names(module: Module) -> set[str]:
    """The variables that the file gives as a `map_location`."""
    return {dotted(keyword.value) for _, keyword in module.passed_as("map_location")} - {""}


def _is_location_name(target: ast.expr, names: set[str]) -> bool:
    name = dotted(target)
    return name in names or name.endswith("map_location")


def locations(module: Module) -> list[ast.Assign]:
    """The statements that set a `map_location` which is None else, in an `if` with no other branch."""
    names = _location_names(module)
    return [assigned for assigned in module.of_type(ast.Assign) if _gives_location(module, assigned, names)]


def _gives_location(module: Module, assigned: ast.Assign, names: set[str]) -> bool:
    target = assigned.targets[0]
    block = module.parents[assigned]
    if not isinstance(block, ast.If) or (block.orelse and assigned in (*block.body, *block.orelse)):
        return False
    if isinstance(target, ast.Subscript):
        return is_constant(target.slice, "map_location")
    named = isinstance(target, ast.Name | ast.Attribute) and _is_location_name(target, names)
    return named and _is_none_else(module, dotted(target))


def _is_none_else(module: Module, name: str) -> bool:
    """Whether a variable, or a parameter by default, is None somewhere."""
    assigned = any(
        is_constant(node.value, None) and name in map(dotted, node.targets) for node in module.of_type(ast.Assign)
    )
    signatures = [function.args for function in module.of_type(ast.FunctionDef)]
    return assigned or any(
        argument.arg == name and default is not None and is_constant(default, None)
        for signature in signatures
        for argument, default in (
            *zip(reversed([*signature.posonlyargs, *signature.args]), reversed(signature.defaults), strict=False),
            *zip(signature.kwonlyargs, signature.kw_defaults, strict=True),
        )
    )


def _says_location(node: ast.expr) -> bool:
    """Whether it is a dictionary of arguments with a `map_location` among them."""
    match node:
        case ast.Dict(keys=keys):
            return any(is_constant(key, "map_location") for key in keys if key is not None)
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
            return any(keyword.arg == "map_location" for keyword in keywords)
    return False


def _other_branch_maps(context: Context, call: ast.Call) -> bool:
    """Whether the load is chosen by a test for CUDA whose other branch says `map_location`."""
    for child, parent in context.module.ancestors(call):
        if isinstance(parent, ast.If | ast.IfExp) and child is not parent.test:
            branches = [parent.body, parent.orelse]
            other = next(b for b in branches if child is not b and not (isinstance(b, list) and child in b))
            parts = other if isinstance(other, list) else [other]
            maps = any(isinstance(n, ast.keyword) and n.arg == "map_location" for p in parts for n in ast.walk(p))
            if maps and context.guards.cuda_tests(call):
                return True
    return False


def _is_settled(context: Context, choice: ast.IfExp) -> bool:
    """Whether a function for CUDA's storages is chosen where CUDA is there."""
    is_function = isinstance(choice.body, ast.Lambda) and _storage_call(choice.body) is not None
    return is_function and context.guards.tests_availability(choice.test)


def _storage_call(function: ast.Lambda) -> ast.Call | None:
    """The call in `lambda storage, location: storage.cuda(...)`."""
    body = function.body
    if isinstance(body, ast.Call) and isinstance(body.func, ast.Attribute) and body.func.attr == "cuda":
        return body
    return None
