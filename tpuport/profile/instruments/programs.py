"""Programs that the device's compiler is given, and how often each is executed."""

import ctypes
import hashlib
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tpuport.profile.codec import encode
from tpuport.profile.instruments.locations import read_contents
from tpuport.profile.instruments.memory import BufferMemory
from tpuport.profile.layout import CONTENTS, PROGRAMS, write_bytes, write_json
from tpuport.profile.pjrt import Address, ClientCompileArgs, ExecuteArgs, Function, PluginTable
from tpuport.profile.records import MemoryBeside, Program, RecordWriter


class Programs:
    """Watches a PJRT plugin: compilations always, executions only on request, as counting one costs about 0.1 ms.

    The programs that were executed while counting are kept in the session, one file each, named by its SHA-256, and
    what they hold beside them.
    """

    def __init__(
        self,
        table: PluginTable,
        writer: RecordWriter,
        session: Path,
        stop_locating: Callable[[], None],
        *,
        memory: bool = False,
    ) -> None:
        """With `memory`, what lies beside programs on the device is followed too, which slows every step."""
        self._table = table
        self._writer = writer
        self._session = session
        self._stop_locating = stop_locating
        self._code: dict[int, tuple[str, bytes]] | None = {}
        self._index_of: dict[Address, int] = {}
        self._runs: Counter[int] = Counter()
        self._stop_counting: Callable[[], None] | None = None
        self.compiled = 0
        self._memory = BufferMemory(table, self._index) if memory else None
        table.replace("PJRT_Client_Compile", self._watch_compile)

    def _watch_compile(self, original: Function) -> Function:
        def compile_(address: Address) -> Address | None:
            arguments = ClientCompileArgs.from_address(address)
            program = arguments.program.contents
            code = ctypes.string_at(program.code, program.code_size)
            start = time.perf_counter()
            error = original(address)
            seconds = time.perf_counter() - start
            index, self.compiled = self.compiled, self.compiled + 1
            digest = hashlib.sha256(code).hexdigest()
            self._writer.write(Program(index, digest, len(code), seconds, failed=bool(error)))
            if not error:
                self._index_of[arguments.executable] = index
                if self._memory is not None:
                    self._memory.forget(arguments.executable)
                if self._code is not None:
                    self._code[index] = digest, code
            return error

        return compile_

    def _watch_execute(self, original: Function) -> Function:
        def execute(address: Address) -> Address | None:
            self._runs[self._index(ExecuteArgs.from_address(address).executable)] += 1
            return original(address)

        return execute

    def _index(self, executable: Address) -> int:
        return self._index_of.get(executable, -1)

    def start_counting(self) -> None:
        """Count executions from now on."""
        self._runs.clear()
        if self._memory is not None:
            self._memory.start()
        if self._stop_counting is None:
            self._stop_counting = self._table.replace("PJRT_LoadedExecutable_Execute", self._watch_execute)

    def take(self) -> dict[int, int]:
        """Return how often each program was executed since counting started or this was last called."""
        taken = dict(sorted(self._runs.items()))
        self._runs.clear()
        return taken

    def stop_counting(self) -> dict[int, int]:
        """Stop, and return how often each program, by its index, was executed."""
        if self._stop_counting is not None:
            self._stop_counting()
            self._stop_counting = None
            if self._memory is not None:
                self._writer.write(MemoryBeside(self._memory.take()))
        return self.take()

    def keep(self, indices: set[int]) -> None:
        """Save the programs of these indices; from here on programs are neither located in the source nor held."""
        held, self._code = self._code or {}, None
        self._stop_locating()
        for index in indices & held.keys():
            digest, code = held[index]
            path = self._session / PROGRAMS / digest
            if not path.exists():
                write_bytes(path, code)
                write_json(self._session / CONTENTS / f"{digest}.json", encode(read_contents(code)))
