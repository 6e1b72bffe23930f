"""Running the user's script as `__main__`, and saying how it ended."""

import functools
import importlib.util
import io
import linecache
import os
import re
import shutil
import sys
import traceback
import types
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import replace
from importlib.abc import SourceLoader
from pathlib import Path
from types import TracebackType
from typing import Any

from tpuport.profile.codec import encode
from tpuport.profile.frames import innermost_user_frame, traced_frames
from tpuport.profile.instruments.compilation import python_stack
from tpuport.profile.instruments.steps import EnoughSteps
from tpuport.profile.layout import PLAN, write_json
from tpuport.profile.notebooks import SUFFIX, cell_file, read_cells
from tpuport.profile.plan import ModePlan, Plan
from tpuport.profile.records import Ended, Frame, Note, RecordWriter
from tpuport.source.text import lines

Namespace = Callable[[dict[str, Any]], MutableMapping[str, Any]]
"""Gives the mapping in which the top level of a module is executed, from the module's dictionary."""
SCRIPT_BODY = "module"
"""What the script's own top level is called on a stack, instead of `<module>`."""
_LEFT_OUT_SHOWN = 5
_write = os.write
_ERROR_LIMIT = 2_000
_WORKER_ERROR = re.compile(
    r"(?P<caught>Caught .*)\nOriginal Traceback.*\n(?P<trace>(?:  .*\n)+)(?P<error>(?:.*\n?)*)", re.MULTILINE
)
"""How torch raises in the script what was raised in another process or thread, such as a DataLoader's worker."""
"""Characters of an exception's message that are kept: compilers put whole programs there."""


class ScriptEnd:
    """Context around the script that records its end, whatever that is, and lets nothing through."""

    def __init__(self, writer: RecordWriter, prefixes: tuple[str, ...]) -> None:
        self._writer = writer
        self._prefixes = prefixes

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> bool:
        self._writer.write(self.describe(error))
        return True

    def describe(self, error: BaseException | None) -> Ended:
        """Return the record of an end by `error`, or by running off the script's last line."""
        if error is None:
            return Ended("finished")
        if isinstance(error, EnoughSteps):
            return Ended("enough")
        frame = self._frame(error)
        if isinstance(error, SystemExit):
            code = error.code
            if code is None or isinstance(code, int):
                return Ended("exit", code or 0, frame=frame)
            return Ended("exit", 1, error=str(code)[:_ERROR_LIMIT], frame=frame)
        message = _message(error)
        if (worker := _WORKER_ERROR.match(message)) is not None:
            message = f"{worker['caught'].removesuffix('.')}: {worker['error'].strip()}"
            frame = innermost_user_frame(traced_frames(worker["trace"]), self._prefixes) or frame
        text = f"{type(error).__name__}: {message}".strip().removesuffix(":")
        trace = "".join(traceback.format_exception(error))
        # sys.stderr may be closed, or an object of the script's own.
        with suppress(OSError):
            _write(2, trace.encode(errors="replace"))
        return Ended("raised", 1, text[:_ERROR_LIMIT], frame, trace[-20 * _ERROR_LIMIT :])

    def _frame(self, error: BaseException) -> Frame | None:
        if isinstance(error, SyntaxError) and error.filename and error.lineno:
            return Frame(error.filename, error.lineno, "<module>")
        stack = [
            Frame(entry.filename, entry.lineno or 0, entry.name) for entry in traceback.extract_tb(error.__traceback__)
        ]
        return innermost_user_frame(stack, self._prefixes)


def _message(error: BaseException) -> str:
    # Unlike str(), this survives an exception of the script that has no text.
    return str(traceback.TracebackException(type(error), error, None))


def run_script(plan: Plan, writer: RecordWriter, namespace: Namespace) -> None:
    """Execute what the plan names as Python or Jupyter would: names, arguments and import path are the same."""
    if plan.module:
        _run_module(plan, namespace)
        return
    module = _main_module(__file__=plan.script, __spec__=None)
    sys.argv = [plan.script_as_given, *plan.arguments]
    sys.path.insert(0, str(Path(plan.script).parent))
    if plan.script.endswith(SUFFIX):
        _run_notebook(plan, writer, module, namespace)
        return
    with io.open_code(plan.script) as file:
        source = file.read()
    _execute(compile(source, plan.script, "exec", dont_inherit=True), module, namespace)


def _run_module(plan: Plan, namespace: Namespace) -> None:
    sys.path.insert(0, plan.directory)
    # As under `python -m`: packages above the module are imported with this in place of its file.
    sys.argv = ["-m", *plan.arguments]
    spec = importlib.util.find_spec(plan.module)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{plan.module}.__main__")
    if spec is None or not isinstance(spec.loader, SourceLoader):
        raise ImportError(f"{plan.module} is not a module of Python source")
    code = spec.loader.get_code(spec.name)
    assert code is not None, spec.name
    sys.argv[0] = str(spec.origin)
    module = _main_module(
        __file__=spec.origin, __cached__=spec.cached, __loader__=spec.loader, __package__=spec.parent, __spec__=spec
    )
    _execute(code, module, namespace)


def _run_notebook(plan: Plan, writer: RecordWriter, module: types.ModuleType, namespace: Namespace) -> None:
    del module.__dict__["__file__"]
    module.__dict__["display"] = print
    # Inside Jupyter figures go into the notebook, and no window waits to be closed.
    os.environ.setdefault("MPLBACKEND", "agg")
    cells = read_cells(Path(plan.script))
    left_out = [(cell, item) for cell in cells for item in cell.left_out]
    if left_out:
        cell, item = left_out[0]
        shown = ", ".join(f"`{item.text}`" for _, item in left_out[:_LEFT_OUT_SHOWN])
        more = f" and {len(left_out) - _LEFT_OUT_SHOWN} more" if len(left_out) > _LEFT_OUT_SHOWN else ""
        frame = Frame(cell_file(plan.script, cell.number), item.line, SCRIPT_BODY)
        writer.write(
            Note("left-out", f"lines of the notebook that only IPython runs were left out: {shown}{more}", frame)
        )
    for cell in cells:
        name = cell_file(plan.script, cell.number)
        # Whatever reads source text finds it here; without a time it is not looked for on disk.
        linecache.cache[name] = (len(cell.python), None, lines(cell.python), name)
        _execute(compile(cell.python, name, "exec", dont_inherit=True), module, namespace)


def _main_module(**attributes: object) -> types.ModuleType:
    module = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=__builtins__, **attributes)
    sys.modules["__main__"] = module
    return module


def _execute(code: types.CodeType, module: types.ModuleType, namespace: Namespace) -> None:
    # torch_tpu leaves frames named `<…>` out of the stacks that it writes into programs.
    exec(code.replace(co_name=SCRIPT_BODY), module.__dict__, namespace(module.__dict__))


def watch_os_exit(writer: RecordWriter, prefixes: tuple[str, ...]) -> Callable[[int], None]:
    """Record calls of os._exit, which end the process without a trace; return the original."""
    leave = os._exit

    def recorded(status: int) -> None:
        if writer.owns_process:
            frame = innermost_user_frame(python_stack(sys._getframe(1)), prefixes)
            writer.write(Ended("os-exit", status, frame=frame))
        leave(status)

    os._exit = recorded  # type: ignore[assignment]
    return leave


def watch_exec(mode_plan: ModePlan, writer: RecordWriter, prefixes: tuple[str, ...]) -> None:
    """Follow a script that replaces its process by itself, with other arguments or environment; record others."""

    def watched(replace_process: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(replace_process)
        def exec_(path: Any, arguments: Any, *environment: Any) -> Any:
            if not writer.owns_process:
                return replace_process(path, arguments, *environment)
            frame = innermost_user_frame(python_stack(sys._getframe(1)), prefixes)
            own = _own_arguments(mode_plan.plan, path, arguments)
            if own is None:
                writer.write(Ended("exec", error=os.fsdecode(path), frame=frame))
                return replace_process(path, arguments, *environment)
            writer.write(Note("exec", "the script starts itself anew here: what is measured is the new start", frame))
            plan = replace(mode_plan.plan, arguments=own)
            write_json(Path(mode_plan.folder) / PLAN, encode(replace(mode_plan, plan=plan)))
            given = dict(*environment) if environment else dict(os.environ)
            return execve(sys.executable, sys.orig_argv, {**_needed(os.environ), **given})

        return exec_

    execve, os.execv, os.execve = os.execve, watched(os.execv), watched(os.execve)


def _own_arguments(plan: Plan, path: Any, arguments: Any) -> tuple[str, ...] | None:
    """Return the script's arguments in a command line that starts it with this Python; None for another program."""
    if not isinstance(path, str | bytes | os.PathLike) or shutil.which(os.fsdecode(path)) is None:
        return None
    if Path(os.fsdecode(path)).resolve() != Path(sys.executable).resolve():
        return None
    words = [os.fsdecode(word) for word in arguments]
    names = {plan.script, plan.script_as_given}
    start = next((number for number, word in enumerate(words) if number and word in names), None)
    return None if start is None else tuple(words[start + 1 :])


def _needed(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what the device needs in its environment, which the script may have left out."""
    names = ("TORCH_DEVICE_BACKEND_AUTOLOAD", "CUDA_VISIBLE_DEVICES")
    return {name: environment[name] for name in names if name in environment}
