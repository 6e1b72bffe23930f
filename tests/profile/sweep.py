"""Runs torch's own operator database on the emulated TPU, to find what its stand-ins still lack.

`python -m tests.profile.sweep [NAME...] [--compiled] [--output FILE]` prints one JSON line for each operator that does
not compute what the CPU does: `missing` on a TPU too, `raises`, `differs` (so does all that is random), or `died` with
the process. It needs the package expecttest, which torch's operator database imports. Work is done in a child that is
started anew after each operator that ends it.
"""

import argparse
import faulthandler
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LIMIT_S = 60
_NO_KERNEL = "is not implemented for TPU"
"""What torch_tpu says of an operator that a TPU lacks as well."""
_SAMPLES = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--child", action="store_true")
    options = parser.parse_args()
    if options.child:
        _child(json.loads(options.names[0]), compiled=options.compiled)
        return
    with options.output.open("w") if options.output else os.fdopen(1, "w") as out:
        for result in _sweep(options.names, compiled=options.compiled):
            if result["outcome"] != "ok":
                out.write(json.dumps(result) + "\n")
                out.flush()


def _sweep(names: list[str], *, compiled: bool) -> Any:
    names = names or _all_names()
    position = 0
    while position < len(names):
        with tempfile.TemporaryFile("w+") as log:
            arguments = ["--child", json.dumps(names[position:]), *(["--compiled"] if compiled else [])]
            child = subprocess.Popen(
                [sys.executable, "-m", "tests.profile.sweep", *arguments], stdout=subprocess.PIPE, stderr=log, text=True
            )
            assert child.stdout is not None
            for line in child.stdout:
                if line.startswith("{"):
                    yield json.loads(line)
                    position += 1
            status = child.wait()
            if position < len(names):
                log.seek(0)
                text = log.read().strip().splitlines()
                said = next((item for item in text if "Check failed" in item or "Timeout" in item), "")
                yield {"name": names[position], "outcome": "died", "status": status, "said": said[:300]}
                position += 1


def _operators() -> dict[str, Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return {operator.full_name: operator for operator in op_db}


def _all_names() -> list[str]:
    return list(_operators())


def _child(names: list[str], *, compiled: bool) -> None:
    from tpuport.profile import emulator, standins

    table = emulator.load()
    used: list[str] = []
    library = standins.install(lambda what, _how: used.append(what), table)
    operators = _operators()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for name in names:
        used.clear()
        faulthandler.dump_traceback_later(LIMIT_S, exit=True)
        result = {"name": name, **_outcome(operators[name], compiled=compiled), "stood_in": list(used)}
        out.write(json.dumps(result) + "\n")
        out.flush()
    del library, table
    os._exit(0)


def _outcome(operator: Any, *, compiled: bool) -> dict[str, str]:
    import torch

    kinds = (torch.float32, torch.complex64, torch.int64, torch.bool)
    dtype = next((kind for kind in kinds if kind in operator.dtypes), None)
    if dtype is None:
        return {"outcome": "ok"}
    gradients = operator.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    samples = list(operator.sample_inputs("cpu", dtype, requires_grad=gradients))
    step = max(1, -(-len(samples) // (1 if compiled else _SAMPLES)))
    for sample in samples[::step]:
        torch._dynamo.reset()
        try:
            wanted = _run(operator.op, sample)
        except Exception as error:  # noqa: BLE001  (that is what is looked for)
            return {"outcome": "cpu", "said": repr(error)[:200]}
        try:
            # Called with a function of its own, Dynamo compiles what is a builtin of torch too.
            function = torch.compile(lambda *a, **k: operator.op(*a, **k)) if compiled else operator.op
            found = _run(function, sample.transform(_to_device))
            torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3, equal_nan=True)
        except AssertionError as error:
            return {"outcome": "differs", "said": " ".join(str(error).split())[:300]}
        except Exception as error:  # noqa: BLE001  (that is what is looked for)
            said = " ".join(f"{type(error).__name__}: {error}".split())
            return {"outcome": "missing" if _NO_KERNEL in said else "raises", "said": said[:600]}
    return {"outcome": "ok"}


def _to_device(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().to("tpu").requires_grad_(value.requires_grad)
    return torch.device("tpu") if isinstance(value, torch.device) else value


def _run(function: Any, sample: Any) -> list[Any]:
    """Return the tensors of a call and the gradients of its inputs, on the CPU."""
    import torch
    from torch.utils._pytree import tree_leaves

    inputs = (sample.input, *sample.args)
    results = [item for item in tree_leaves(function(*inputs, **sample.kwargs)) if isinstance(item, torch.Tensor)]
    differentiable = [item for item in results if item.requires_grad and not item.is_sparse]
    if differentiable:
        sum(item.abs().square().sum() for item in differentiable).backward()
    leaves = [item for item in tree_leaves((inputs, sample.kwargs)) if isinstance(item, torch.Tensor)]
    gradients = [item.grad for item in leaves if item.grad is not None]
    return [item.detach().cpu() for item in (*results, *gradients)]


if __name__ == "__main__":
    main()
