"""What the rules must know of all files of a run together: found by bytes first, then by parsing where those match."""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache

from tpuport.analysis.own_cuda import has_own_cuda

# These begin with plain letters, which regexes look for several times as fast as for `\b` or alternatives; what they
# find too much is parsed in vain, and no more.
CUDA_METHOD = re.compile(rb"def\s+cuda\s*\(")
VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
_SELECTORS = ("set_device", "set_device_index", "set_device_idx", "device_of", "device_index")
_SELECTOR_WORDS = (b"set_device", b"device_of", b"device_index")
_TO_CALL = rb"(?:[\s)\\]|#[^\n]*)*+\("
"""What may stand between a name and the parenthesis that calls it."""

_CALLS_SELECTOR = re.compile(rb"(?:set_device(?:_index|_idx)?|device_of|device_index)" + _TO_CALL)
_SELECTS = re.compile(rb"cuda\s*(?:\.\s*device" + _TO_CALL + rb"|import)")
_PROCESS = re.compile(rb"Process\s*\(")
CUDA_NAMES = (
    "autocast",
    "GradScaler",
    "custom_fwd",
    "custom_bwd",
    "amp",
    "device_count",
    "current_device",
    "synchronize",
)
"""Names of torch.cuda that projects import and re-export, and whose counterparts take other arguments."""

_IMPORTED = re.compile(rb"import\b[ \t]*(\([^)]{0,4000}|[^#\n]{0,1000})")
"""What an import names; bounded, so that no file makes the search long."""

_CUDA_NAME = re.compile(rb"\b(?:" + "|".join(CUDA_NAMES).encode() + rb")\b")

_TAKES_DEVICE = (
    re.compile(rb"to\(\s*([A-Za-z_][\w.]*)\s*[,)]"),
    re.compile(rb"device\s*[(=]\s*([A-Za-z_][\w.]*)\s*[,)\n]"),
    re.compile(rb"map_location\s*=\s*([A-Za-z_][\w.]*)"),
)
_TAKES_BACKEND = re.compile(
    rb"init_process_group\s*\((?:[^()]{0,400}?\bbackend\s*=\s*|\s*(?:backend\s*=\s*)?)([A-Za-z_][\w.]*)\s*[,)]"
)

_BEHIND = rb"(?:[^\n]{0,200},[ \t]*(?:\\\r?\n[ \t]*)?)?"
"""What may stand between `import` and a module that is not the first one there; bounded likewise."""

_UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What `ast.parse` raises for text that is no Python, or too much of it; the file's own outcome says so later."""


def imports_of(modules: Iterable[str]) -> tuple[re.Pattern[bytes], ...]:
    """Patterns for imports of any of these modules, or of what begins with their names."""
    any_of = rb"(?:" + "|".join(modules).encode() + rb")"
    return re.compile(rb"import[ \t]+" + _BEHIND + any_of), re.compile(rb"from[ \t]+" + any_of)


_TORCH = imports_of(["torch"])


def uses_torch(raw: bytes) -> bool:
    """Whether a source file imports torch, or a library whose name begins with it."""
    return b"torch" in raw and any(pattern.search(raw) for pattern in _TORCH)


def cuda_methods(raw: bytes) -> Iterator[str]:
    """Names of classes in a source file whose `cuda` method does more than move the parts of a module."""
    if not CUDA_METHOD.search(raw):
        return
    for node in _walk(raw):
        if isinstance(node, ast.ClassDef) and has_own_cuda(node):
            yield node.name


def defers_cuda(raw: bytes) -> bool:
    """Whether a source file sets CUDA_VISIBLE_DEVICES for its own process, or starts processes that may be forks."""
    named = VISIBLE_DEVICES.encode() in raw and any(sets_visible_devices(node) for node in _walk(raw))
    return named or (_may_fork(raw) and any(map(_forks, _walk(raw))))


def _may_fork(raw: bytes) -> bool:
    return b"os.fork" in raw or _PROCESS.search(raw) is not None


def _forks(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="fork")):
            return True
        case ast.Call(func=ast.Attribute(attr="Process") | ast.Name(id="Process")):
            return True
    return False


def imported_names(raw: bytes) -> Iterator[str]:
    """Names that torch.cuda has too and that a source file imports from elsewhere, a file of the run perhaps."""
    if any(_CUDA_NAME.search(names) for names in _IMPORTED.findall(raw)):
        for node in _walk(raw):
            if isinstance(node, ast.ImportFrom) and (node.level or not (node.module or "").startswith("torch")):
                yield from (alias.name for alias in node.names if alias.name in CUDA_NAMES)


def device_names(raw: bytes) -> tuple[str, ...]:
    """The last parts of the names that a source file hands to where torch takes a device, sorted."""
    return _last_parts(found for pattern in _TAKES_DEVICE for found in pattern.findall(raw))


def backend_names(raw: bytes) -> tuple[str, ...]:
    """The last parts of the names that a source file hands to a process group as its backend, sorted."""
    return _last_parts(_TAKES_BACKEND.findall(raw)) if b"init_process_group" in raw else ()


def _last_parts(names: Iterable[bytes]) -> tuple[str, ...]:
    """The last parts of dotted names; a text such as "e.g." has none."""
    return tuple(sorted({name.rpartition(b".")[2].decode() for name in names} - {""}))


def selects_device(raw: bytes) -> bool:
    """Whether a source file changes which CUDA device is the current one, for good or for a block."""
    named = any(word in raw for word in _SELECTOR_WORDS) and _CALLS_SELECTOR.search(raw) is not None
    named = named or _SELECTS.search(raw) is not None
    return named and any(_selects(node) for node in _walk(raw))


def _selects(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in _SELECTORS:
            return True
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="cuda") | ast.Name(id="cuda"), attr="device")):
            return True
        case ast.ImportFrom(module="torch.cuda", names=names):
            return any(alias.name == "device" for alias in names)
    return False


@lru_cache(maxsize=1)
def _walk(raw: bytes) -> tuple[ast.AST, ...]:
    """Every node of a file's tree, none if it does not parse; the questions about one file share one parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(raw)
    except _UNPARSABLE:
        return ()
    return tuple(_nodes(tree))


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """As `ast.walk`, in another order and in a third of the time."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        for value in vars(node).values():
            if type(value) is list:
                pending += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                pending.append(value)


def sets_visible_devices(node: ast.AST) -> bool:
    """Whether a node sets CUDA_VISIBLE_DEVICES for its own process."""
    match node:
        case ast.Assign(targets=targets):
            return any(
                isinstance(target, ast.Subscript) and _is_environ(target.value) and _is_name(target.slice)
                for target in targets
            )
        case ast.AugAssign(target=target, op=ast.BitOr(), value=value):
            return _is_environ(target) and _names(value)
        case ast.Call(func=ast.Attribute(value=owner, attr="setdefault" | "__setitem__"), args=[key, *_]):
            return _is_environ(owner) and _is_name(key)
        case ast.Call(func=ast.Attribute(attr="putenv") | ast.Name(id="putenv"), args=[key, *_]):
            return _is_name(key)
        case ast.Call(func=ast.Attribute(value=owner, attr="update"), args=values, keywords=keywords):
            return _is_environ(owner) and (
                any(map(_names, values)) or any(keyword.arg == VISIBLE_DEVICES for keyword in keywords)
            )
    return False


def _is_environ(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or (
        isinstance(node, ast.Name) and node.id == "environ"
    )


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (VISIBLE_DEVICES, VISIBLE_DEVICES.encode())


def _names(node: ast.expr) -> bool:
    """Whether a mapping expression holds the variable as a key: {"X": …} or dict(X=…)."""
    return any(
        (isinstance(part, ast.expr) and _is_name(part))
        or (isinstance(part, ast.keyword) and part.arg == VISIBLE_DEVICES)
        for part in ast.walk(node)
    )
