"""A PJRT plugin's table of functions, with entries that can be replaced and put back.

torch_tpu reaches its hardware through such a plugin, a shared library, and calls it through one table in that
library's memory. Loading the library first and editing the table gives a view of every program that is compiled and
executed, whatever hardware is behind it. Layouts follow XLA's `pjrt_c_api.h`, whose table only ever grows at its end.
"""

import ctypes
import mmap
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

Address = int
Function = Callable[[Address], Address | None]
"""A PJRT function: takes the address of its argument structure, returns the address of an error, or None."""

_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_WORD = ctypes.sizeof(ctypes.c_void_p)
_FIRST_ENTRY = 40
"""Bytes before the first function pointer: struct_size, extension_start and PJRT_Api_Version."""
_EXTENSION_HEAD = 3
"""Words before an extension's functions: struct_size, type and the next extension."""
_ENTRIES = {
    "PJRT_Client_Create": 10,
    "PJRT_Client_Compile": 20,
    "PJRT_Executable_Destroy": 40,
    "PJRT_Executable_NumOutputs": 44,
    "PJRT_LoadedExecutable_GetExecutable": 51,
    "PJRT_LoadedExecutable_Execute": 55,
    "PJRT_Buffer_Destroy": 58,
    "PJRT_Buffer_OnDeviceSizeInBytes": 64,
    "PJRT_Buffer_Delete": 67,
    "PJRT_Buffer_IsDeleted": 68,
    "PJRT_Buffer_ToHostBuffer": 70,
}


class NamedValue(ctypes.Structure):
    """PJRT_NamedValue, for int64 values."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("name_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("int64_value", ctypes.c_int64),
        ("value_size", ctypes.c_size_t),
    )
    INT64 = 1


class ClientCreateArgs(ctypes.Structure):
    """The head of PJRT_Client_Create_Args."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("create_options", ctypes.c_void_p),
        ("num_options", ctypes.c_size_t),
    )


class Program(ctypes.Structure):
    """PJRT_Program."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("code", ctypes.c_void_p),
        ("code_size", ctypes.c_size_t),
        ("format", ctypes.c_void_p),
        ("format_size", ctypes.c_size_t),
    )


class ClientCompileArgs(ctypes.Structure):
    """PJRT_Client_Compile_Args."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("client", ctypes.c_void_p),
        ("program", ctypes.POINTER(Program)),
        ("compile_options", ctypes.c_void_p),
        ("compile_options_size", ctypes.c_size_t),
        ("executable", ctypes.c_void_p),
    )


_Buffers = ctypes.POINTER(ctypes.c_void_p)


class ExecuteArgs(ctypes.Structure):
    """The head of PJRT_LoadedExecutable_Execute_Args; arguments and outputs are lists of buffers, one a device."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("executable", ctypes.c_void_p),
        ("options", ctypes.c_void_p),
        ("argument_lists", ctypes.POINTER(_Buffers)),
        ("num_devices", ctypes.c_size_t),
        ("num_args", ctypes.c_size_t),
        ("output_lists", ctypes.POINTER(_Buffers)),
    )


class SubjectArgs(ctypes.Structure):
    """What the functions take that ask one word of an object: the object, and the place of the answer, if any.

    Of this form are the arguments of PJRT_Buffer_Destroy, _Delete, _IsDeleted (whose answer is one byte) and
    _OnDeviceSizeInBytes, PJRT_LoadedExecutable_GetExecutable, PJRT_Executable_NumOutputs and _Destroy.
    """

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("subject", ctypes.c_void_p),
        ("answer", ctypes.c_uint64),
    )
    WITHOUT_ANSWER = 3 * ctypes.sizeof(ctypes.c_void_p)


class PluginTable:
    """The function table of the plugin library at `path`, which stays loaded for the life of the process."""

    _alive: ClassVar[list[object]] = []
    """What the library calls: it outlives the objects of this class, as the library does."""

    def __init__(self, path: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        library = ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)
        library.GetPjrtApi.restype = ctypes.c_void_p
        self._address: int = library.GetPjrtApi()
        size = self._word(self._address).value
        needed = _FIRST_ENTRY + _WORD * (max(_ENTRIES.values()) + 1)
        if size < needed:
            raise OSError(f"{path}: its PJRT table has {size} bytes, at least {needed} are needed")
        self._make_writable(self._address, needed)

    @staticmethod
    def _word(address: Address) -> ctypes.c_uint64:
        return ctypes.c_uint64.from_address(address)

    def _make_writable(self, address: Address, size: int) -> None:
        start = address & ~(mmap.PAGESIZE - 1)
        length = address + size - start
        if self._libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(length), mmap.PROT_READ | mmap.PROT_WRITE):
            raise OSError(ctypes.get_errno(), "mprotect of the PJRT table failed")

    def replace(self, name: str, make: Callable[[Function], Function]) -> Callable[[], None]:
        """Put `make(original)` in the place of the function `name`; the result puts the original back."""
        entry = self._word(self._address + _FIRST_ENTRY + _WORD * _ENTRIES[name])
        before = entry.value
        original = _PROTOTYPE(before)
        callback = _PROTOTYPE(make(original))
        self._alive.extend((original, callback))
        entry.value = ctypes.cast(callback, ctypes.c_void_p).value or 0

        def restore() -> None:
            entry.value = before

        return restore

    def ask(self, name: str, subject: Address, answer_size: int = _WORD) -> int:
        """Call a function that takes an object alone, and return its answer of `answer_size` bytes, 0 for none."""
        arguments = SubjectArgs(SubjectArgs.WITHOUT_ANSWER + answer_size, None, subject, 0)
        function = _PROTOTYPE(self._word(self._address + _FIRST_ENTRY + _WORD * _ENTRIES[name]).value)
        if function(ctypes.addressof(arguments)):
            raise OSError(f"{name} failed")
        return int(arguments.answer)

    def extend(self, number: int, *functions: Function) -> None:
        """Add an extension: its number in PJRT_Extension_Type, and its functions in the order of its structure.

        Must happen before a client is created.
        """
        callbacks = [_PROTOTYPE(function) for function in functions]
        words = (ctypes.c_uint64 * (_EXTENSION_HEAD + len(callbacks)))()
        first = self._word(self._address + _WORD)
        words[:_EXTENSION_HEAD] = [ctypes.sizeof(words), number, first.value or 0]
        words[_EXTENSION_HEAD:] = [ctypes.cast(callback, ctypes.c_void_p).value or 0 for callback in callbacks]
        self._alive.extend((*callbacks, words))
        first.value = ctypes.addressof(words)
