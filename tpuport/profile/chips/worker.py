"""A process that compiles: one job a line of JSON on standard input, one result a line on standard output.

The compiler can abort the process on a program; then only that program is lost. Started by `pool`.
"""

import json
import os
import sys
from pathlib import Path

from tpuport.profile.chips.compiler import Compiler, Keep
from tpuport.profile.chips.wire import content_field
from tpuport.profile.codec import encode
from tpuport.profile.layout import write_bytes


def main() -> None:
    """Answer jobs (`{"program": path, "chip": name, "module": path or null}`) until standard input ends.

    The module that a program becomes goes to `module`, as the HloProto that TensorBoard's graph viewer opens.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # libtpu prints on both streams.
    os.dup2(2, 1)
    compiler = Compiler()
    for line in sys.stdin:
        job = json.loads(line)
        result = compiler.compile(Path(job["program"]).read_bytes(), job["chip"], _keep(job["module"]))
        answers.write(json.dumps(encode(result), separators=(",", ":")) + "\n")
        answers.flush()


def _keep(path: str | None) -> Keep | None:
    return (lambda module: write_bytes(Path(path), content_field(1, module))) if path else None


if __name__ == "__main__":
    main()
