"""Bytes on the device that lie beside each program while it runs: weights, optimizer state, activations kept for later.

What a program itself needs the compiler knows. What else is there it does not: that is all buffers that are neither the
program's arguments nor its results. Every buffer is followed from the execution that makes it, or first takes it, to
its end, in the whole run: this costs too much for a run whose steps are timed.
"""

from collections.abc import Callable
from typing import Any

from tpuport.profile.pjrt import Address, ExecuteArgs, Function, PluginTable, SubjectArgs


class BufferMemory:
    """Follows the buffers of a PJRT plugin, and keeps for each program the most that lay beside it.

    Sizes are those that the plugin gives. A buffer that no program has made or taken is not known.
    """

    def __init__(self, table: PluginTable, index_of: Callable[[Address], int]) -> None:
        self._table = table
        self._index_of = index_of
        self._sizes: dict[Address, int] = {}
        self._outputs: dict[Address, int] = {}
        self._beside: dict[int, int] | None = None
        table.replace("PJRT_LoadedExecutable_Execute", self._watch_execute)
        table.replace("PJRT_Buffer_Destroy", self._watch_end)
        table.replace("PJRT_Buffer_Delete", self._watch_end)

    def start(self) -> None:
        """Keep what lies beside programs from now on."""
        self._beside = {}

    def take(self) -> dict[int, int]:
        """Return the most bytes that lay beside each program, by its index, since `start`."""
        taken, self._beside = self._beside or {}, None
        return taken

    def forget(self, executable: Address) -> None:
        """Know that another executable may now lie at an address."""
        self._outputs.pop(executable, None)

    def _watch_execute(self, original: Function) -> Function:
        def execute(address: Address) -> Address | None:
            call = ExecuteArgs.from_address(address)
            arguments = {_pointer(call.argument_lists[0][place]) for place in range(call.num_args)}
            for buffer in arguments - self._sizes.keys():
                self._sizes[buffer] = self._size(buffer)
            if self._beside is not None:
                index = self._index_of(call.executable)
                beside = sum(self._sizes.values()) - sum(self._sizes[buffer] for buffer in arguments)
                self._beside[index] = max(beside, self._beside.get(index, 0))
            outputs = self._number_of_outputs(call.executable)
            error = original(address)
            if not error:
                for buffer in arguments:
                    if self._table.ask("PJRT_Buffer_IsDeleted", buffer, 1):
                        self._sizes.pop(buffer, None)
                for place in range(outputs):
                    buffer = _pointer(call.output_lists[0][place])
                    self._sizes[buffer] = self._size(buffer)
            return error

        return execute

    def _watch_end(self, original: Function) -> Function:
        def end(address: Address) -> Address | None:
            self._sizes.pop(_pointer(SubjectArgs.from_address(address).subject), None)
            return original(address)

        return end

    def _size(self, buffer: Address) -> int:
        return self._table.ask("PJRT_Buffer_OnDeviceSizeInBytes", buffer)

    def _number_of_outputs(self, loaded: Address) -> int:
        if loaded not in self._outputs:
            executable = self._table.ask("PJRT_LoadedExecutable_GetExecutable", loaded)
            self._outputs[loaded] = self._table.ask("PJRT_Executable_NumOutputs", executable)
            self._table.ask("PJRT_Executable_Destroy", executable, 0)
        return self._outputs[loaded]


def _pointer(value: Any) -> Address:
    return int(value or 0)
