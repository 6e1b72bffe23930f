"""Where the accelerator is sure to be at work: the body of a training step, and the forward of a module."""

import ast

from tpuport.analysis.module import Module, dotted


def imports_torch(module: Module) -> bool:
    """Whether the module imports torch or a part of it, anywhere."""
    names = [alias.name for node in module.of_type(ast.Import) for alias in node.names]
    names += [node.module for node in module.of_type(ast.ImportFrom) if node.module and not node.level]
    return any(name == "torch" or name.startswith("torch.") for name in names)


def in_forward(module: Module, node: ast.AST) -> bool:
    """Whether `node` runs in the `forward` of a `torch.nn.Module`."""
    function = module.function(node)
    while function is not None:
        if function.name == "forward" and _is_network(module, module.parents[function]):
            return True
        function = module.function(function)
    return False


def _is_network(module: Module, node: ast.AST) -> bool:
    if not isinstance(node, ast.ClassDef):
        return False
    names = [module.qualified(base) or dotted(base) for base in node.bases]
    return any(name.startswith("torch.nn.") or name == "nn.Module" for name in names)


def training_loop(module: Module, node: ast.AST) -> ast.For | ast.While | None:
    """The innermost loop around `node`, in the same function, that calls `backward()` itself; None without one.

    What runs only now and then, under a test with `%`, counts as outside of the step.
    """
    for child, parent in module.ancestors(node):
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            return None
        if isinstance(parent, ast.If) and child is not parent.test and _is_rare(parent.test):
            return None
        if isinstance(parent, ast.For | ast.While):
            if child not in parent.body:
                continue
            return parent if _steps(module, parent) else None
    return None


def _is_rare(test: ast.expr) -> bool:
    return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) for part in ast.walk(test))


def _steps(module: Module, loop: ast.For | ast.While) -> bool:
    """Whether the loop's own body, and not one within it, calls `backward()`."""
    for call in module.calls_by_method.get("backward", []):
        for child, parent in module.ancestors(call):
            if isinstance(parent, ast.For | ast.While) and child in parent.body:
                if parent is loop:
                    return True
                break
    return False
