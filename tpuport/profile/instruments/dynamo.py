"""Dynamo's structured trace: graph breaks, recompilations and compile times, as records."""

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from tpuport.profile.records import Frame, FrameCompiled, FrameStarted, GraphBreak, Recompile, RecordWriter

_LOGGER = "torch.__trace"


class DynamoTrace(logging.Handler):
    """Receives the trace in memory: no file and no environment variable is needed."""

    def __init__(self, writer: RecordWriter) -> None:
        super().__init__(logging.DEBUG)
        self._writer = writer
        self._files: dict[int, str] = {}
        self.graphs = 0
        self._by_key: dict[str, Callable[[Mapping[str, Any], str], None]] = {
            "str": self._string,
            "dynamo_start": self._start,
            "compilation_metrics": self._metrics,
            "artifact": self._artifact,
        }

    def install(self) -> None:
        """Start listening; must happen before anything is compiled, as file names are sent only once."""
        logging.getLogger(_LOGGER).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Turn one trace entry into a record."""
        metadata = getattr(record, "metadata", None)
        if not isinstance(metadata, dict):
            return
        for key, handle in self._by_key.items():
            if key in metadata:
                payload = getattr(record, "payload", None)
                handle(metadata, payload if isinstance(payload, str) else "")

    def _string(self, metadata: Mapping[str, Any], _payload: str) -> None:
        text, index = metadata["str"]
        self._files[index] = text

    def _start(self, metadata: Mapping[str, Any], _payload: str) -> None:
        stack = tuple(
            Frame(self._files.get(entry["filename"], ""), entry["line"], entry["name"])
            for entry in metadata["dynamo_start"]["stack"]
        )
        self._writer.write(FrameStarted(*_frame_key(metadata), stack))

    def _metrics(self, metadata: Mapping[str, Any], _payload: str) -> None:
        metrics = metadata["compilation_metrics"]
        if metrics.get("is_forward") is False:
            return
        operations = metrics.get("graph_op_count") or 0
        failure = metrics.get("fail_type")
        if operations and not failure:
            self.graphs += 1
        self._writer.write(
            FrameCompiled(
                *_frame_key(metadata),
                function=metrics.get("co_name"),
                file=metrics.get("co_filename"),
                line=metrics.get("co_firstlineno"),
                operations=operations,
                seconds=metrics.get("entire_frame_compile_time_s") or 0.0,
                failure=failure,
                failure_reason=metrics.get("fail_reason"),
            )
        )

    def _artifact(self, metadata: Mapping[str, Any], payload: str) -> None:
        name = metadata["artifact"].get("name")
        if name == "dynamo_graph_break_reason":
            self._writer.write(GraphBreak(*_frame_key(metadata), payload))
        elif name == "recompile_reasons":
            self._writer.write(Recompile(*_frame_key(metadata), _reasons(payload)))


def _frame_key(metadata: Mapping[str, Any]) -> tuple[int, int]:
    return metadata.get("frame_id", -1), metadata.get("frame_compile_id", -1)


def _reasons(payload: str) -> tuple[str, ...]:
    """A single reason comes as it is, several as a JSON list."""
    try:
        reasons = json.loads(payload)
    except ValueError:
        return (payload,)
    return tuple(map(str, reasons)) if isinstance(reasons, list) else (str(reasons),)
