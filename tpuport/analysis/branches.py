"""What stands in a branch that a test for CUDA guards: signs of CUDA code that no rule knows, and harmless lines."""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache

from tpuport.analysis.guards import TERMINATORS, Condition, Guards, alternatives, atoms
from tpuport.analysis.libraries import library_of
from tpuport.analysis.module import Module, dotted

CUDA_CODE = re.compile(
    r"cuda|cudnn|nccl|nvml|triton|flash_attn|xformers|apex|tensorrt|bitsandbytes|(^|[._])fused_|(^|\.)Fused[A-Z]"
    r"|(^|[._])ext\.",
    re.IGNORECASE,
)
"""Names of functions that are taken for CUDA code of some library's or the project's own."""

GPU_MODULE = re.compile(r"(^|\.)gpu\.|^faiss\.\w*gpu", re.IGNORECASE)
"""Qualified names of what belongs to a module called `gpu`, or to the part of faiss that is for CUDA."""

MOVES_DATA = re.compile(r"(^|[._])(to|move|send|copy|put)(_\w+)?_?(cuda|gpu)$", re.IGNORECASE)
GPU_PART = re.compile(r"(?<![a-z0-9])gpu(?![a-z0-9])_?", re.IGNORECASE)
"""`gpu` as a word of a dotted name."""

BUILD_NAMES = re.compile(r"^(WITH|HAS|HAVE)_CUDA$|^CUDA_HOME$|^CUDA(Extension|_EXT)")
BUILD_TEXT = re.compile(r"WITH_CUDA|CUDA\w*Provider|[-_]gpu\b|\.cu\b|_cuda\.c\b|nvcc")
CUDA_TEXT = re.compile(r"cuda|gpu|nccl|tensorrt", re.IGNORECASE)
OUTPUT_CALLS = {"print", "info", "debug", "warning", "warn", "log", "write", "exception", "error", "log_message"}
"""Functions and methods that only tell people something."""

HOST_LIBRARIES = {
    *("numpy", "scipy", "pandas", "sklearn", "matplotlib", "seaborn", "PIL", "cv2", "skimage", "imageio"),
    *("tqdm", "yaml", "requests", "gdown", "psutil", "tensorboard", "tensorboardX", "wandb", "torchvision"),
}
"""Libraries whose import says nothing of CUDA."""

DATA_METHODS = {"get", "keys", "values", "items", "append", "extend", "format", "join", "split", "strip"}
TEXT_METHODS = {"split", "replace", "strip", "lower", "upper"}
FILLS = {"update", "append", "extend", "setdefault", "insert", "add"}


class Branches:
    """Looks into the branches of one module; `drafted` are the nodes that some rule has claimed, `moving` those that
    have a counterpart on every accelerator.
    """

    def __init__(
        self, module: Module, guards: Guards, drafted: Iterable[ast.AST], moving: Iterable[ast.AST] = ()
    ) -> None:
        self.module = module
        self.guards = guards
        self.moving = set(moving)
        self._tops = list(drafted)

    @cached_property
    def drafted(self) -> set[ast.AST]:
        """The claimed nodes with all in them; `Load` and its kind are one object wherever they stand."""
        return {node for top in self._tops for node in ast.walk(top) if not isinstance(node, ast.expr_context)}

    # Signs of CUDA code

    @cached_property
    def _all_suspects(self) -> list[ast.AST]:
        return list(self._suspects())

    def suspects(self) -> Iterator[ast.AST]:
        """Nodes of the module that look like CUDA code which no rule has claimed."""
        return iter(self._all_suspects)

    def _suspects(self) -> Iterator[ast.AST]:
        for call in self.module.of_type(ast.Call):
            if self._calls_cuda_code(call):
                yield call
        for name in self.module.of_type(ast.Name):
            if BUILD_NAMES.match(name.id):
                yield name
        for text in self.module.of_type(ast.Constant):
            if isinstance(text.value, str) and BUILD_TEXT.search(text.value) and not self.is_told(text):
                yield text
        imports: list[ast.Import | ast.ImportFrom] = [
            *self.module.of_type(ast.Import),
            *self.module.of_type(ast.ImportFrom),
        ]
        yield from (node for node in imports if not _is_common(node) and self._is_chosen(node))

    def _is_chosen(self, node: ast.stmt) -> bool:
        """Whether a statement stands in a branch of a test for CUDA, and not only below one that ends the program."""
        return any(
            isinstance(parent, ast.If)
            and child is not parent.test
            and any(self.guards.cuda_sources(part) for part in _parts(parent, child in parent.body))
            for child, parent in self.module.ancestors(node)
        )

    def _calls_cuda_code(self, call: ast.Call) -> bool:
        name = self.module.callee(call) or dotted(call.func)
        if name.startswith("torch.") or not (_is_cuda_code(name) or self._is_for_gpu(call)):
            return False
        if call.func in self.drafted or call in self.drafted:
            return False
        if library_of(name) or GPU_MODULE.search(self.module.callee(call)):
            return True
        return not self._reads_data(call.func) and not self._is_portable_here(call.func)

    def _reads_data(self, func: ast.expr) -> bool:
        """Whether it is a method of plain data in a variable, whatever the variable is called."""
        return (
            isinstance(func, ast.Attribute)
            and func.attr in DATA_METHODS
            and isinstance(func.value, ast.Name)
            and self.module.only_value(func.value) is not None
        )

    def _is_for_gpu(self, call: ast.Call) -> bool:
        """Whether a call says that it is for a GPU: by the module it comes from, or beside its twin for the CPU."""
        name = dotted(call.func)
        if "gpu" not in name.lower() and "gpu" not in self.module.callee(call).lower():
            return False
        return bool(GPU_MODULE.search(self.module.callee(call))) or (
            not MOVES_DATA.search(name) and self._has_twin(name)
        )

    def _has_twin(self, name: str) -> bool:
        """Whether the file also calls what is named so for the CPU: `ext.nms_gpu` beside `ext.nms_cpu` or `ext.nms`."""
        if not GPU_PART.search(name):
            return False
        plain = GPU_PART.sub("", name).rstrip("_.")
        return any(twin in self._called for twin in (GPU_PART.sub(_as_cpu, name), plain))

    @cached_property
    def _called(self) -> set[str]:
        """The dotted names of all that the module calls."""
        return {dotted(call.func) for call in self.module.of_type(ast.Call)} - {""}

    def _is_portable_here(self, func: ast.expr) -> bool:
        """Whether this file defines the function, and its body shows what rules know or moves data by a device."""
        found = self.module.lookup(func) if isinstance(func, ast.Name) else None
        return found is not None and all(
            isinstance(binding.node, ast.FunctionDef | ast.AsyncFunctionDef) and self._is_portable(binding.node)
            for binding in found[1]
        )

    def _is_portable(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        return any(
            node in self.moving or node in self._tests or self._moves_to_a_device(node) for node in ast.walk(function)
        )

    @cached_property
    def _tests(self) -> set[ast.expr]:
        return set(self.guards.tests())

    def _moves_to_a_device(self, node: ast.AST) -> bool:
        """Whether it is `x.to(device)`, as helpers do that have moved."""
        match node:
            case ast.Call(func=ast.Attribute(attr="to"), args=[ast.Name(id=name), *_]):
                return name.endswith("device")
        return False

    def is_told(self, node: ast.AST) -> bool:
        """Whether a string only tells people something: printed, logged, raised, a docstring or an option's help."""
        for child, parent in self.module.ancestors(node):
            match parent:
                case ast.Raise() | ast.Expr(value=ast.Constant() | ast.JoinedStr()):
                    return True
                case ast.Assert(msg=message) if message is child:
                    return True
                case ast.keyword(arg="help" | "reason" | "msg" | "desc" | "description"):
                    return True
                case ast.Call(func=func) if dotted(func).rpartition(".")[2] in OUTPUT_CALLS:
                    return True
                case ast.stmt():
                    return False
        return False

    # Harmless lines

    @cached_property
    def _guarded(self) -> dict[ast.expr, list[ast.AST]]:
        """For each test, the statements and the arms of conditional expressions that it guards."""
        found: dict[ast.expr, list[ast.AST]] = {}
        for node in self.module.nodes:
            arm = isinstance(node, ast.expr) and isinstance(self.module.parents.get(node), ast.IfExp)
            if isinstance(node, ast.stmt) or arm:
                for test in self.guards.cuda_tests(node):
                    found.setdefault(test, []).append(node)
        return found

    def is_plain(self, test: ast.expr) -> bool:
        """Whether a test's branches hold only what means the same on every accelerator: output and plain values."""
        return all(self._is_plain(node) for node in self._guarded.get(test, []))

    def _is_plain(self, node: ast.AST) -> bool:
        match node:
            case ast.Pass() | ast.Break() | ast.Continue() | ast.Raise() | ast.If() | ast.Return(value=None):
                return True
            case ast.Expr(value=ast.Call(func=func, args=args, keywords=keywords)):
                name = dotted(func).rpartition(".")[2]
                values = [*args, *(keyword.value for keyword in keywords)]
                ends = (self.module.qualified(func) or dotted(func)) in TERMINATORS
                return ends or name in OUTPUT_CALLS or (name in FILLS and all(map(self._is_plain, values)))
            case ast.Expr(value=value):
                return isinstance(value, ast.Constant)
            case ast.Assign(value=value) | ast.AugAssign(value=value) | ast.Return(value=ast.expr() as value):
                return self._is_plain(value)
            case ast.Constant(value=str(text)):
                return not CUDA_TEXT.search(text) and text != "cpu"
            case ast.Constant() | ast.Name():
                return True
            case ast.Subscript(value=base, slice=ast.Constant(value=int())):
                return self._is_read(base)
            case ast.ListComp(elt=made, generators=[ast.comprehension(iter=iterated, ifs=[])]):
                return self._is_plain(made) and self._is_read(iterated)
            case ast.Call(func=ast.Attribute(value=base, attr=attr), args=args, keywords=[]) if attr in TEXT_METHODS:
                return self._is_read(base) and all(map(self._is_plain, args))
            case ast.Call(func=ast.Attribute(value=base, attr="cpu" | "detach" | "numpy"), args=[], keywords=[]):
                return self._is_read(base)
            case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
                return all(map(self._is_plain, elements))
            case ast.Dict(keys=keys, values=values):
                return all(map(self._is_plain, filter(None, keys))) and all(map(self._is_kept, values))
            case ast.UnaryOp(operand=operand):
                return self._is_plain(operand)
            case ast.BinOp(left=left, right=right):
                return self._is_plain(left) and self._is_plain(right)
            case ast.Call(func=ast.Attribute(value=base, attr="join" | "format"), args=args, keywords=[]):
                return all(map(self._is_plain, args)) and isinstance(base, ast.Constant | ast.Name | ast.Attribute)
            case ast.Call(func=ast.Name(id="dict" | "int" | "float" | "len" | "min" | "max"), args=args, keywords=kws):
                return all(map(self._is_plain, (*args, *(keyword.value for keyword in kws))))
        return node in self.drafted

    def reads_device(self, test: ast.expr) -> bool:
        """Whether a test of a tensor's device guards no more than where the tensor is, or copies of it on the CPU.

        Not in a module with CUDA code, which what is read here may lead to.
        """
        nodes = self._guarded.get(test, [])
        read = [node for node in nodes if self._reads_device(node)]
        return bool(read) and not self._all_suspects and all(node in read or self._is_constant(node) for node in nodes)

    def _reads_device(self, node: ast.AST) -> bool:
        match node:
            case ast.Assign(value=value) | ast.Return(value=ast.expr() as value):
                return self._reads_device(value)
            case ast.Call(func=ast.Attribute(value=base, attr="get_device"), args=[], keywords=[]):
                return self._is_read(base)
            case ast.Call(func=ast.Attribute(value=base, attr="cpu" | "detach" | "numpy"), args=[], keywords=[]):
                return self._reads_device(base) or self._is_read(base)
            case ast.Call(func=ast.Attribute(value=ast.Call() as made, attr="copy_"), args=[copied], keywords=[]):
                return bool(re.fullmatch(r"torch\.\w*Tensor", self.module.callee(made))) and self._is_read(copied)
        return False

    def _is_constant(self, node: ast.AST) -> bool:
        match node:
            case ast.Assign(value=value) | ast.Return(value=ast.expr() as value):
                return self._is_constant(value)
            case ast.UnaryOp(operand=ast.Constant(value=int())) | ast.Constant() | ast.Name() | ast.If():
                return True
        return False

    def _is_kept(self, node: ast.AST) -> bool:
        """Whether it is a plain value, or a setting, as one among others in a table."""
        if isinstance(node, ast.Attribute):
            return not CUDA_TEXT.search(node.attr) and self._is_read(node)
        return self._is_plain(node)

    def _is_read(self, node: ast.expr) -> bool:
        """Whether it is a plain value, or an attribute of one: of what is worked with, not what is chosen."""
        if isinstance(node, ast.Attribute):
            return self._is_read(node.value) and not CUDA_CODE.search(node.attr) and not self.module.qualified(node)
        return self._is_plain(node)


@lru_cache(maxsize=4096)
def _is_cuda_code(name: str) -> bool:
    """Whether a function's name says that it is CUDA code."""
    return bool(library_of(name) or (CUDA_CODE.search(name) and not MOVES_DATA.search(name)))


def _as_cpu(found: re.Match[str]) -> str:
    return found[0].replace("gpu", "cpu").replace("GPU", "CPU")


def _parts(branch: ast.If, holds: bool) -> Iterator[Condition]:
    """The conditions of which an arm of a branch needs all, or any."""
    for condition in atoms(branch.test, holds):
        yield from alternatives(condition)


def _is_common(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether an import is of torch, of the standard library, or of what runs on the host."""
    if isinstance(node, ast.ImportFrom):
        names = ["." if node.level else (node.module or "")]
    else:
        names = [alias.name for alias in node.names]
    return all(name.partition(".")[0] in {"torch", *HOST_LIBRARIES, *sys.stdlib_module_names} for name in names)
