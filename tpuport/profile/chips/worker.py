"""A process that compiles: one job a line of JSON on standard input, one result a line on standard output.

The compiler can abort the process on a program; then only that program is lost. Started by `pool`.
"""

import json
import os
import sys
from pathlib import Path

from tpuport.profile.chips.compiler import Compiler
from tpuport.profile.codec import encode


def main() -> None:
    """Answer jobs (`{"program": path, "chip": name}`) until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # libtpu prints on both streams.
    os.dup2(2, 1)
    compiler = Compiler()
    for line in sys.stdin:
        job = json.loads(line)
        result = compiler.compile(Path(job["program"]).read_bytes(), job["chip"])
        answers.write(json.dumps(encode(result), separators=(",", ":")) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
