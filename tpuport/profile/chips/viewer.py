"""The programs that a chip would run, where TensorBoard's graph viewer opens them.

Each mode and chip is a run of its own: XProf takes modules that lie beside a trace for those of the trace. Field
numbers are those of `xplane.proto`, which never change.
"""

import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from tpuport.profile.chips.pool import module_path
from tpuport.profile.chips.wire import Message, content_field, number_field
from tpuport.profile.layout import MODULE_SUFFIX, TRACES, XPLANE_SUFFIX, write_bytes
from tpuport.profile.plan import Mode

_NAME_LIMIT = 120
"""Characters of a module's name in a file's name."""


def show_modules(session: Path, chips: Iterable[str], programs: Mapping[Mode, Iterable[str]]) -> None:
    """Put the modules that were kept of every mode's step (programs by SHA-256) into a run for each chip."""
    for chip in chips:
        for mode, digests in programs.items():
            modules = {digest: module_path(session, chip, digest) for digest in digests}
            kept = {digest: path for digest, path in modules.items() if path.is_file()}
            if kept:
                folder = session / TRACES / graph_run(mode, chip)
                folder.mkdir(parents=True, exist_ok=True)
                for digest, path in kept.items():
                    shutil.copyfile(path, folder / f"{_name(path)}-{digest[:8]}{MODULE_SUFFIX}")
                write_bytes(folder / xplane_name(chip), _no_steps(chip))


def graph_run(mode: Mode, chip: str) -> str:
    """Return what TensorBoard calls the programs of a mode's step on a chip.

    It opens the run that is the last by name: that is to be a trace, and no mode comes before `chip`.
    """
    return f"chip-{chip}-{mode.value}"


def xplane_name(chip: str) -> str:
    """Return the name of the file by which TensorBoard finds them."""
    return f"{chip}{XPLANE_SUFFIX}"


def _name(path: Path) -> str:
    module = Message(path.read_bytes()).message(1).text(1)
    return re.sub(r"[^\w.-]", "_", module)[:_NAME_LIMIT]


def _no_steps(chip: str) -> bytes:
    """Return an XSpace in which nothing ran, and which says that there are modules: XProf offers its viewer by that."""
    stat = number_field(1, 1) + content_field(2, b"Hlo Proto")
    plane = content_field(2, b"/host:metadata") + content_field(5, number_field(1, 1) + content_field(2, stat))
    warning = f"Nothing ran: these are programs compiled for {chip}. See the graph viewer."
    return content_field(1, plane) + content_field(3, warning.encode()) + content_field(4, chip.encode())
