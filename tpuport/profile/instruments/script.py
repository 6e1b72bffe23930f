"""Running the user's script as `__main__`, and saying how it ended."""

import io
import os
import sys
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from tpuport.profile.frames import innermost_user_frame
from tpuport.profile.instruments.compilation import python_stack
from tpuport.profile.instruments.steps import EnoughSteps
from tpuport.profile.plan import Plan
from tpuport.profile.records import Ended, Frame, RecordWriter

SCRIPT_BODY = "module"
"""What the script's own top level is called on a stack, instead of `<module>`."""
_ERROR_LIMIT = 2_000
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
        text = f"{type(error).__name__}: {error}".strip().removesuffix(":")
        trace = "".join(traceback.format_exception(error))
        sys.stderr.write(trace)
        return Ended("raised", 1, text[:_ERROR_LIMIT], frame, trace[-20 * _ERROR_LIMIT :])

    def _frame(self, error: BaseException) -> Frame | None:
        if isinstance(error, SyntaxError) and error.filename and error.lineno:
            return Frame(error.filename, error.lineno, "<module>")
        stack = [
            Frame(entry.filename, entry.lineno or 0, entry.name) for entry in traceback.extract_tb(error.__traceback__)
        ]
        return innermost_user_frame(stack, self._prefixes)


def run_script(plan: Plan) -> None:
    """Execute the script as `python SCRIPT ARG…` would: its names, arguments and import path are the same."""
    path = Path(plan.script)
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=plan.script, __builtins__=__builtins__, __spec__=None)
    sys.argv = [plan.script_as_given, *plan.arguments]
    sys.path.insert(0, str(path.parent))
    sys.modules["__main__"] = module
    with io.open_code(plan.script) as file:
        source = file.read()
    # torch_tpu leaves frames named `<…>` out of the stacks that it writes into programs.
    code = compile(source, plan.script, "exec", dont_inherit=True).replace(co_name=SCRIPT_BODY)
    exec(code, module.__dict__)


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
