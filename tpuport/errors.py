"""The exit codes of every command, and the one base class of errors that a user can act on."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit status says."""

    CLEAN = 0
    """Nothing to report."""
    FINDINGS = 1
    """Lint findings, manual work left under `migrate --strict`, or a failed profile threshold."""
    ERROR = 2
    """Wrong usage or configuration, or a file that could not be read, parsed or written."""
    PROGRAM_FAILED = 3
    """The profiled program failed."""


INTERRUPTED = 130
"""The exit status of an interrupted command, as shells have it: 128 and the number of SIGINT."""


class TpuportError(Exception):
    """A failure whose message says what failed, where, what is valid and what to do next.

    The command line prints the message without a traceback and exits with `exit_code`.
    """

    exit_code = ExitCode.ERROR

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(TpuportError):
    """An argument or a combination of arguments that makes no sense."""


class ConfigError(TpuportError):
    """A `[tool.tpuport]` table or a rule file that cannot be used as it stands."""
