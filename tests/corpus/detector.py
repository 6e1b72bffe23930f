"""Finds CUDA constructs in a text, with nothing of tpuport's: a second opinion on what its matcher passes over.

It is blunt on purpose. Names are resolved by one table of imports a file, scopes are ignored, and a string counts by
how it reads. What it takes for a construct:

- any use of `torch.cuda`, `torch.backends.cudnn`, `torch.backends.cuda` and `torch.version.cuda`, by any import;
- a call of a method named `cuda`, the attribute `is_cuda`, `ProfilerActivity.CUDA` and `Backend.NCCL`;
- the strings `cuda`, `cuda:0`, `cuda:` and the like, `nccl`, `cpu:gloo,cuda:nccl`, `torch.cuda.FloatTensor`;
- `DataParallel(...)`, `is_nccl_available()`, and `device_ids=` or `output_device=` in a call;
- the import of a library that works on CUDA alone.

Not constructs: docstrings, dictionary keys and subscripts (names of things, by which checkpoints are read), option
names such as `--cuda` and their `dest`, messages, environment variables, flags named `cuda`, and what a project itself
calls `DataParallel` or `is_cuda()`.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

ROOTS = ("torch.cuda", "torch.backends.cudnn", "torch.backends.cuda", "torch.version.cuda")
CUDA_ONLY = frozenset(
    [
        "amp_C",
        "apex",
        "bitsandbytes",
        "cupy",
        "cuda_ext",
        "deepspeed",
        "fast_layer_norm",
        "flash_attn",
        "fused_layer_norm_cuda",
        "pycuda",
        "pynvml",
        "tensorrt",
        "torch_tensorrt",
        "transformer_engine",
        "triton",
        "xformers",
    ]
)
INSIDE = ("torch.utils.cpp_extension", "nvidia.dali", "nvidia.nvimgcodec", "nvidia.nccl", "nvidia.nvtx")
"""Modules of packages that hold others too; projects have a package `nvidia` of their own."""

DEVICE_TEXT = re.compile(r"cuda(:\S*)?|\S*\bcuda:(\d+|\{.*|%d|%s)?|(.*:)?nccl(,.*)?|torch\.cuda\.\w+")


@dataclass(frozen=True, slots=True)
class Construct:
    """One construct: lines count from 1, columns from 0 in characters; `guards` are the lines of the tests around."""

    kind: str
    line: int
    column: int
    end_line: int
    end_column: int
    guards: tuple[int, ...] = ()


def constructs(source: str) -> list[Construct]:
    """Every construct in `source`, in order. Raises SyntaxError or ValueError when it does not parse."""
    return _Scan(source).constructs()


class _Scan:
    def __init__(self, source: str) -> None:
        self.lines = source.split("\n")
        self.tree = ast.parse(source)
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        self.names = dict(self._imports())

    def constructs(self) -> list[Construct]:
        found = [self._construct(kind, node) for node in ast.walk(self.tree) if (kind := self._kind(node))]
        return sorted(found, key=lambda construct: (construct.line, construct.column))

    def _imports(self) -> Iterator[tuple[str, str]]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    yield alias.asname or alias.name, f"{node.module}.{alias.name}"

    def _qualified(self, node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return self.names.get(node.id, "")
        if isinstance(node, ast.Attribute):
            owner = self._qualified(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        return ""

    def _kind(self, node: ast.AST) -> str:
        match node:
            case ast.Attribute() | ast.Name():
                return self._name(node)
            case ast.Constant(value=str(text)):
                return "string" if DEVICE_TEXT.fullmatch(text) and not self._is_a_name(node) else ""
            case ast.Call(func=ast.Attribute(attr="cuda") as func) if not self._qualified(func).startswith("torch."):
                return ".cuda()"
            case ast.Call(func=func, keywords=keywords):
                called = getattr(func, "attr", getattr(func, "id", ""))
                ours = self._qualified(func) and not self._qualified(func).startswith("torch.")
                if called in ("DataParallel", "is_nccl_available") and not ours:
                    return str(called)
                numbered = any(k.arg in ("device_ids", "output_device") for k in keywords)
                return "device_ids" if numbered and any(n.startswith("torch") for n in self.names.values()) else ""
            case ast.Import(names=names):
                return "import" if any(self._is_cuda_only(alias.name) for alias in names) else ""
            case ast.ImportFrom(module=str(module), level=0):
                return "import" if self._is_cuda_only(module) else ""
        return ""

    def _name(self, node: ast.Attribute | ast.Name) -> str:
        parent = self.parents[node]
        name = self._qualified(node)
        if name.startswith(ROOTS):
            longer = isinstance(parent, ast.Attribute)
            return "" if longer or not isinstance(getattr(node, "ctx", None), ast.Load | ast.Store) else name
        if isinstance(node, ast.Attribute):
            if node.attr == "is_cuda" and isinstance(node.ctx, ast.Load):
                called = isinstance(parent, ast.Call) and parent.func is node
                return "" if called else ".is_cuda"
            if (node.attr == "CUDA" and "Activity" in ast.unparse(node.value)) or node.attr == "NCCL":
                return node.attr
        return ""

    def _is_cuda_only(self, module: str) -> bool:
        return module.split(".")[0] in CUDA_ONLY or module.startswith(INSIDE)

    def _is_a_name(self, node: ast.AST) -> bool:
        """Whether a string stands where it names something: a key, a folder, an option's variable, a docstring."""
        parent = self.parents[node]
        if isinstance(parent, ast.BinOp):
            return self._is_a_name(parent)
        if isinstance(parent, ast.Dict):
            return node in parent.keys
        if isinstance(parent, ast.Call) and "join" in ast.unparse(parent.func):
            return True
        return isinstance(parent, ast.Subscript | ast.Expr) or (
            isinstance(parent, ast.keyword) and parent.arg == "dest"
        )

    def _construct(self, kind: str, node: ast.AST) -> Construct:
        assert isinstance(node, ast.expr | ast.stmt)
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return Construct(
            kind,
            node.lineno,
            self._characters(node.lineno, node.col_offset),
            end_line,
            self._characters(end_line, end_column),
            tuple(self._guards(node)),
        )

    def _characters(self, line: int, bytes_: int) -> int:
        return len(self.lines[line - 1].encode()[:bytes_].decode())

    def _guards(self, node: ast.AST) -> Iterator[int]:
        """Lines of the tests that decide whether `node` runs and that mention CUDA."""
        while (parent := self.parents.get(node)) is not None:
            test = getattr(parent, "test", None)
            inside = isinstance(parent, ast.If | ast.IfExp) and node is not test
            if inside and isinstance(test, ast.expr) and "cuda" in ast.unparse(test):
                yield test.lineno
            node = parent
