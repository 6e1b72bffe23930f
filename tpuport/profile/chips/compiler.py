"""One program through libtpu's compiler, with no TPU attached. Only worker processes import libtpu and pypjrt."""

import ctypes
import hashlib
import importlib
import os
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from tpuport.profile.chips.estimates import Compiled, Memory
from tpuport.profile.chips.hlo import read
from tpuport.profile.chips.specs import CHIPS
from tpuport.profile.chips.wire import Message

PACKAGES = ("libtpu", "pypjrt")
"""What compiling needs."""
Keep = Callable[[bytes], None]
_ERROR_LIMIT = 1_000
"""Characters of the compiler's message that are kept."""
_ENVIRONMENT = {
    # libtpu would otherwise ask the cloud's metadata server which TPU this is, for minutes.
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v6e-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    # Its lock is for the hardware, of which nothing is touched here.
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}


class Compiler:
    """libtpu, loaded once a process, and the chips that it was asked for so far."""

    def __init__(self) -> None:
        os.environ.update(_ENVIRONMENT)
        self._pjrt: Any = importlib.import_module("pypjrt._loader")
        self._errors: Any = importlib.import_module("pypjrt.errors")
        self._options: Any = importlib.import_module("pypjrt.compile_options")
        self._plugin: Any = self._pjrt.Plugin(importlib.import_module("libtpu").get_library_path())
        self._plugin.initialize()
        self._topologies: dict[str, Any] = {}
        self._version = version("libtpu")

    def compile(self, code: bytes, chip: str, keep: Keep | None = None) -> Compiled:
        """Compile one program; that it is refused is a result too. `keep` is given the module that it becomes."""
        digest = hashlib.sha256(code).hexdigest()
        start = time.monotonic()
        try:
            executable = self._executable(code, chip)
            flops, memory, module = self._cost(executable), self._memory(executable), self._optimised(executable)
        except self._errors.PjrtError as error:
            text = " ".join(str(error).split())[:_ERROR_LIMIT]
            return Compiled(digest, chip, self._version, time.monotonic() - start, error=text or type(error).__name__)
        if keep is not None:
            keep(module)
        kernels = read(module, CHIPS[chip])
        return Compiled(digest, chip, self._version, time.monotonic() - start, "", flops, memory, kernels)

    def _executable(self, code: bytes, chip: str) -> int:
        if chip not in self._topologies:
            topology: Any = importlib.import_module("pypjrt.topology")
            self._topologies[chip] = topology.Topology.create(self._plugin, CHIPS[chip].topology)
        plugin = self._plugin
        options = self._options.CompileOptions(use_shardy_partitioner=b"sdy." in code).encode(plugin.abi)
        text, format_ = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"mlir", 4)
        given = ctypes.create_string_buffer(options, len(options))
        program = plugin.args(
            "PJRT_Program",
            code=ctypes.cast(text, ctypes.c_void_p),
            code_size=len(code),
            format=ctypes.cast(format_, ctypes.c_void_p),
            format_size=4,
        )
        arguments = plugin.args(
            "PJRT_Compile_Args",
            topology=self._topologies[chip]._check(),
            program=ctypes.addressof(program),
            compile_options=ctypes.cast(given, ctypes.c_void_p),
            compile_options_size=len(options),
        )
        plugin.call("PJRT_Compile", arguments)
        return int(arguments.executable)

    def _cost(self, executable: int) -> float:
        arguments = self._plugin.args("PJRT_Executable_GetCostAnalysis_Args", executable=executable)
        self._plugin.call("PJRT_Executable_GetCostAnalysis", arguments)
        values = self._pjrt.read_named_values(self._plugin.abi, arguments.properties, arguments.num_properties)
        return float(values.get("flops", 0.0))

    def _memory(self, executable: int) -> Memory:
        arguments = self._plugin.args("PJRT_Executable_GetCompiledMemoryStats_Args", executable=executable)
        self._plugin.call("PJRT_Executable_GetCompiledMemoryStats", arguments)
        return Memory(
            arguments=int(arguments.argument_size_in_bytes),
            outputs=int(arguments.output_size_in_bytes),
            aliases=int(arguments.alias_size_in_bytes),
            temporaries=int(arguments.temp_size_in_bytes),
            code=int(arguments.generated_code_size_in_bytes),
            peak=int(arguments.peak_memory_in_bytes),
        )

    def _optimised(self, executable: int) -> bytes:
        """Return the HloModuleProto of what the chip would run."""
        program = self._plugin.args("PJRT_Program")
        arguments = self._plugin.args(
            "PJRT_Executable_OptimizedProgram_Args", executable=executable, program=ctypes.addressof(program)
        )
        # The first call says how large it is, the second fills the buffer.
        self._plugin.call("PJRT_Executable_OptimizedProgram", arguments)
        buffer = ctypes.create_string_buffer(program.code_size)
        program.code = ctypes.cast(buffer, ctypes.c_void_p)
        self._plugin.call("PJRT_Executable_OptimizedProgram", arguments)
        # A HloModuleProtoWithConfig, whose first field is the module.
        return Message(buffer.raw).content(1)
