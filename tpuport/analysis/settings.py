"""Files of Python that only hold settings: another program reads their names, as in mmcv's and nanoGPT's."""

import ast

from tpuport.analysis.module import Module, dotted


def is_setting(module: Module, node: ast.AST) -> bool:
    """Whether `node` is part of a setting, in a module that does nothing but give values to names without torch.

    What such a module imports counts as a setting too where it is read, and so does every further name.
    """
    if any(use.name.startswith("torch") for use in module.uses) or not all(map(_sets_names, module.tree.body)):
        return False
    return all(dotted(part.func) in DATA for part in ast.walk(module.statement(node)) if isinstance(part, ast.Call))


DATA = {"dict", "list", "tuple", "set", "range"}
"""What makes plain data when it is called."""


def _sets_names(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import(names=names):
            return all(name.name.partition(".")[0] != "torch" for name in names)
        case ast.ImportFrom(module=name):
            return (name or "").partition(".")[0] != "torch"
        case ast.Expr(value=ast.Constant()) | ast.AnnAssign(target=ast.Name()) | ast.AugAssign(target=ast.Name()):
            return True
        case ast.Assign(targets=targets):
            return all(isinstance(target, ast.Name | ast.Tuple) for target in targets)
    return False
