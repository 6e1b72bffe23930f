"""The training that `profile_overhead` times, with a timer of its own at every step's end.

Profiled it is an ordinary script. With `--bare MODE` it runs by itself, on the same emulated TPU with the same
stand-ins, and ends after `--last` steps.
"""

import argparse
import os
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from tpuport.profile.plan import Mode

_LENGTH = 32
_VOCABULARY = 100


def make_device(mode: Mode) -> object:
    """Make the emulated TPU usable in `mode`; the result has to be kept while it is."""
    from tpuport.profile import emulator

    table = emulator.load()
    import torch

    from tpuport.profile import standins

    library = standins.install(lambda _what, _how: None, table)
    kinds = torch.tpu.EagerMode
    torch.tpu.eager_mode = kinds.DEFER_AND_FUSE if mode.defers else kinds.DEFER_NEVER
    return library


def stamp_steps(file: Path, last: int) -> None:
    """Write wall clock and processor time of this process, in seconds, at every step's end; leave after `last`."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    stamps = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    steps = 0

    def step_ended(*_: Any) -> None:
        nonlocal steps
        torch.accelerator.synchronize()
        os.write(stamps, f"{perf_counter()} {process_time()}\n".encode())
        steps += 1
        if steps == last:
            # As under tpuport: the runtime can crash in the interpreter's teardown.
            os._exit(0)

    register_optimizer_step_post_hook(step_ended)


def train(layers: int, width: int, batch: int, *, compiled: bool) -> None:
    """Train a small transformer, epoch after epoch."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    device = torch.accelerator.current_accelerator()
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    model = nn.Sequential(nn.Embedding(_VOCABULARY, width), encoder, nn.Linear(width, _VOCABULARY)).to(device)
    call = torch.compile(lambda tokens: model(tokens)) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    data = torch.utils.data.DataLoader(torch.randint(0, _VOCABULARY, (8 * batch, _LENGTH)), batch_size=batch)
    while True:
        for rows in data:
            tokens = rows.to(device)
            loss = nn.functional.cross_entropy(call(tokens).flatten(0, 1), tokens.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stamps", type=Path, required=True)
    parser.add_argument("--last", type=int, default=0)
    parser.add_argument("--bare", type=Mode)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--batch", type=int, default=16)
    options = parser.parse_args()
    device = make_device(options.bare) if options.bare else None
    stamp_steps(options.stamps, options.last)
    train(options.layers, options.width, options.batch, compiled=bool(options.bare and options.bare.compiles))
    del device


if __name__ == "__main__":
    main()
