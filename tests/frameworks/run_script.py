"""Run a script on the emulated TPU: `python -m tests.frameworks.run_script SCRIPT`."""

import runpy
import sys
import warnings


def main(script: str) -> None:
    from tpuport.profile import emulator

    table = emulator.load()
    from tpuport.profile import standins

    kept = standins.install(lambda _what, _how: None, table)
    assert kept
    sys.argv = [script]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1])
