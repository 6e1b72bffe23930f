"""Traces for TensorBoard: a few steps more, after all that is measured, as a profiler slows what it watches."""

import contextlib
import importlib
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity

from tpuport.profile.layout import KINETO_TRACE, TRACES
from tpuport.profile.plan import Device, Mode
from tpuport.profile.records import NO_TRACE, Note, RecordWriter, Traced


class Traces:
    """Traces `steps` steps of one mode.

    On a TPU torch_tpu writes an XPlane, beside it lies Kineto's account; elsewhere there is Kineto's alone.
    """

    def __init__(self, writer: RecordWriter, session: Path, device: Device, mode: Mode, steps: int) -> None:
        self._writer = writer
        self._session = session
        self._folder = session / TRACES / mode.value
        self._device = device
        self._steps = steps
        self._done = 0
        self._profiler: Any = None
        self._step: Any = None

    def start(self) -> bool:
        """Trace from now on; say False, and leave a note, when that can't be."""
        if not self._steps:
            return False
        self._folder.mkdir(parents=True)
        try:
            with _quiet():
                profiler = torch.profiler.profile(**self._settings())
                profiler.start()
        except RuntimeError as error:
            self._writer.write(Note(NO_TRACE, f"no trace: {error}"))
            return False
        self._profiler = profiler
        self._mark_step()
        return True

    def _mark_step(self) -> None:
        # The name by which Kineto's readers and XProf know a step.
        self._step = torch.profiler.record_function(f"ProfilerStep#{self._done}")
        self._step.__enter__()

    def _settings(self) -> dict[str, Any]:
        if self._device is Device.CUDA:
            return {"activities": [ProfilerActivity.CPU, ProfilerActivity.CUDA]}
        if not self._device.is_tpu:
            return {"activities": [ProfilerActivity.CPU]}
        config: Any = importlib.import_module("torch_tpu._internal.profiler").TpuProfilerConfig
        return {
            "activities": [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1],
            "experimental_config": config(run_dir=self._folder),
        }

    def step_ended(self) -> bool:
        """One more step is traced; say True when that was the last, and its files are written."""
        self._step.__exit__(None, None, None)
        self._done += 1
        if self._done < self._steps:
            self._mark_step()
            return False
        with _quiet():
            self._profiler.stop()
            self._profiler.export_chrome_trace(str(self._folder / KINETO_TRACE))
        self._gather()
        files = sorted(str(path.relative_to(self._session)) for path in self._folder.iterdir())
        self._writer.write(Traced(self._steps, tuple(files)))
        return True

    def _gather(self) -> None:
        """Move the XPlane out of the folders that torch_tpu makes, so that TensorBoard calls the run as the mode."""
        for path in list(self._folder.glob("plugins/profile/*/*")):
            path.rename(self._folder / path.name)
        for folder in sorted(self._folder.glob("plugins/**/"), reverse=True):
            folder.rmdir()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep what a profiler prints and warns of out of the script's output."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
