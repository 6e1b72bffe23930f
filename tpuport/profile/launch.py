"""What the environment of each rank has to say, on one machine: as under torchrun, and what torch_tpu needs besides."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping

from tpuport.errors import TpuportError, UsageError
from tpuport.profile.plan import Device

_HOST = "localhost"
_STARTED_BY_TORCHRUN = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})
_MARK = "tpuport-launch-environment:"
_ASK_TORCH_TPU = f"""
import json, os
before = dict(os.environ)
import torch
torch.tpu.distributed.set_tpu_launch_env(nproc_per_node=COUNT)
print({_MARK!r} + json.dumps({{k: v for k, v in os.environ.items() if before.get(k) != v}}))
"""
_ASK_LIMIT_S = 300.0


def check_ranks(count: int | None, device: Device) -> None:
    """Raise UsageError when `count` ranks can't be run on `device`, or tpuport itself is a rank of torchrun's."""
    if os.environ.keys() >= _STARTED_BY_TORCHRUN:
        raise UsageError(
            "tpuport was started by torchrun, as one of its ranks",
            hint="Start tpuport alone; it starts the ranks: tpuport profile --nproc N SCRIPT",
        )
    if count is not None and count > 1 and device is Device.EMULATED_TPU:
        raise UsageError(
            "the emulated TPU is one device, and torch_tpu wants one for each rank",
            hint="Use --nproc 1 there, or --device cpu for ranks that talk through gloo.",
        )


def rank_environments(count: int, device: Device) -> tuple[dict[str, str], ...]:
    """Return the variables that each rank gets, rank 0 first.

    Raises TpuportError when torch_tpu can't say what its launch environment is.
    """
    shared = {
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "GROUP_RANK": "0",
        "MASTER_ADDR": _HOST,
        "MASTER_PORT": str(_free_port()),
        **_device_environment(count, device),
    }
    if count > 1 and "OMP_NUM_THREADS" not in os.environ:
        # torchrun does the same, so that the ranks do not fight for the cores.
        shared["OMP_NUM_THREADS"] = "1"
    return tuple({**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count))


def _device_environment(count: int, device: Device) -> Mapping[str, str]:
    if device is Device.EMULATED_TPU:
        return {"TORCH_TPU_SLICEBUILDER_ADDRESSES": f"{_HOST}:{_free_port()}", "TORCH_TPU_TOPOLOGY": "1,1,1"}
    if device is Device.TPU:
        return _ask_torch_tpu(count)
    return {}


def _ask_torch_tpu(count: int) -> Mapping[str, str]:
    """Have torch_tpu's own launcher function say what it sets, in a process that is gone before the ranks start."""
    code = _ASK_TORCH_TPU.replace("COUNT", str(count))
    try:
        asked = subprocess.run(
            [sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=_ASK_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise TpuportError(f"torch_tpu did not say its launch environment within {_ASK_LIMIT_S:g} s") from None
    answers = [line.removeprefix(_MARK) for line in asked.stdout.splitlines() if line.startswith(_MARK)]
    if asked.returncode or not answers:
        last = (asked.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise TpuportError(
            f"torch_tpu has no launch environment for {count} ranks: {last}",
            hint="Is there a chip for each rank? `tpuport doctor` names the chips.",
        )
    variables: dict[str, str] = json.loads(answers[-1])
    return variables


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((_HOST, 0))
        port: int = free.getsockname()[1]
    return port
