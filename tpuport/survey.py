"""One look at the bytes of every file: which ones are to be parsed, and what all of them say of the run together."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tpuport import workers
from tpuport.model import Facts, Outcome, Status
from tpuport.source import project, text

if TYPE_CHECKING:
    from tpuport.cache import Cache

CANDIDATE = (
    b"cuda",
    b"CUDA",
    b"Cuda",
    b"nccl",
    b"NCCL",
    b"cudnn",
    b"autocast",
    b"GradScaler",
    b"DataParallel",
    b"torch.load",
    b"pin_memory",
    b".half(",
    b"apex",
    b"triton",
    b"nvtx",
    b"torch.compile",
    b"inductor",
    b"max-autotune",
    b"reduce-overhead",
    b"record_stream",
    b"sdpa_kernel",
    b"dist.reduce",
    b"distributed.reduce",
    b"distributed.run",
    b"distributed.launch",
    b"torch.multiprocessing",
    b"init_process_group",
    b"torch.tpu",
    b'"tpu',
    b"'tpu",
    b".weight = ",
    b"xformers",
    b"flash_attn",
    b"bitsandbytes",
    b"transformer_engine",
    b"deepspeed",
    b"tensorrt",
    b"pynvml",
    b"cupy",
    b"amp_C",
)
"""A file without any of these bytes holds nothing that a rule could match, and is not parsed.

Plain strings, each searched for on its own: an alternation of them in one regex is six times slower.
"""

TORCH_CANDIDATE = (
    b".backward(",
    b"DataLoader(",
    b"float64",
    b"double",
    b"complex128",
    b".conj(",
    b".mH",
    b".adjoint(",
    b"nonzero",
    b"argwhere",
    b"masked_select",
    b"torch.unique",
    b"torch.where(",
    b"copysign",
    b"logaddexp",
    b"nansum",
    b"median",
    b"kthvalue",
    b"std_mean",
    b".i0(",
    b"sinc(",
    b"hypot(",
    b"cross(",
    b"torch.mode(",
    b"histogram(",
    b"logspace",
    b"poisson(",
    b"renorm",
    b"det(",
    b"matrix_exp",
    b"linalg.",
    b"cholesky",
    b"RReLU",
    b"rrelu",
    b"quantize_per",
    b"bessel_j0",
    b"zeta(",
    b"distributions",
    b"mish(",
    b"Mish(",
    b"smooth_l1",
    b"SmoothL1",
    b"huber",
    b"Huber",
    b"margin_loss",
    b"MarginLoss",
    b"sparse.softmax",
    b"unpool2d",
    b"Unpool2d",
    b"max_pool2d",
    b"MaxPool2d",
    b"weight_norm",
    b"interpolate(",
    b"log_normal_",
    b"geometric_",
    b"cauchy_",
    b"to_sparse",
    b"to_mkldnn",
    b"def forward(",
    b"Embedding(",
    b"index_select(",
    b"torch.tensor([",
    b"one_hot(",
)
"""As CANDIDATE, for the rules about what a TPU does with torch's own operators: only beside the word `torch`."""

WORTH_SURVEYORS = 400
"""Below so many files to look at, starting worker processes takes longer than they save."""

_SURVEYED = 50
"""Files whose bytes a worker looks at in one go."""


@dataclass(frozen=True, slots=True)
class Survey:
    """A run's files after one look at their bytes: a Path is still to be parsed, everything else is settled."""

    items: tuple[Path | Outcome, ...]
    facts: Facts


def survey(
    found: Iterable[Path | Outcome], max_size: int = text.MAX_SIZE, cache: "Cache | None" = None, jobs: int = 0
) -> Survey:
    """Read every file once: settle those with nothing to match, and gather what the rules must know of all of them.

    `jobs` is worker processes, as for `run`; a cache that knows files is quicker without any.
    """
    found = list(found)
    paths = [item for item in found if isinstance(item, Path)]
    looked: Iterator[_Looked] | None = None
    if len(paths) >= WORTH_SURVEYORS and (jobs or workers.cores()) > 1 and (cache is None or cache.is_new):
        looked = iter(_look_in_workers(paths, max_size, cache, jobs or workers.cores()))
    items: list[Path | Outcome] = []
    facts: list[Facts] = []
    with workers.no_collections():
        for item in found:
            if isinstance(item, Outcome):
                items.append(item)
                continue
            own = next(looked) if looked is not None else _look_at(item, max_size, cache)
            if own is None:
                items.append(Outcome(item, Status.UNCHANGED))
            elif isinstance(own, Outcome):
                items.append(own)
            else:
                items.append(item)
                facts.append(own)
    return Survey(tuple(items), together(facts))


_Looked: TypeAlias = "Facts | Outcome | None"
"""What one file says about the run, or how it ended; None if it holds nothing to match."""


def _look_at(path: Path, max_size: int, cache: "Cache | None") -> _Looked:
    try:
        raw = text.read_bytes(path, max_size)
        if cache is not None:
            known, facts = cache.known_facts(path, raw)
            if known:
                return facts
        facts = _facts(path, raw)
    except text.Unreadable as error:
        return error.outcome
    if cache is not None:
        cache.add_facts(path, facts)
    return facts


def _facts(path: Path, raw: bytes, selection: bool = True) -> Facts | None:
    if is_candidate(raw):
        return look(raw, selection)
    text.decode(raw, path)
    return None


def look(raw: bytes, selection: bool = True) -> Facts:
    """What one file's bytes say about the run; without `selection`, nothing about the current device."""
    return Facts(
        tuple(project.cuda_methods(raw)),
        project.defers_cuda(raw),
        selection and project.selects_device(raw),
        tuple(project.imported_names(raw)),
    )


def _look_in_workers(paths: Sequence[Path], max_size: int, cache: "Cache | None", number: int) -> list[_Looked]:
    """What every file says, looked at in worker processes; where one of those dies, in this process."""
    from concurrent.futures.process import BrokenProcessPool

    chunks = [paths[start : start + _SURVEYED] for start in range(0, len(paths), _SURVEYED)]
    looked: list[_Looked] = []
    try:
        with workers.pool(number) as pool:
            with workers.no_interrupt():
                futures = [pool.submit(_look_at_chunk, chunk, max_size, cache is not None) for chunk in chunks]
            for chunk, future in zip(chunks, futures, strict=True):
                for path, (key, own) in zip(chunk, future.result(), strict=True):
                    if cache is not None and key:
                        cache.meet(path, key)
                        if not isinstance(own, Outcome):
                            cache.add_facts(path, own)
                    looked.append(own)
    except BrokenProcessPool:
        looked += [_look_at(path, max_size, cache) for path in paths[len(looked) :]]
    return looked


def _look_at_chunk(paths: Sequence[Path], max_size: int, caching: bool) -> list[tuple[bytes, _Looked]]:
    """What each file says, with the digest of its text for a cache; one that selects a device speaks for all."""
    found: list[tuple[bytes, _Looked]] = []
    selects = False
    with workers.no_collections():
        for path in paths:
            key = b""
            own: _Looked
            try:
                raw = text.read_bytes(path, max_size)
                key = text.digest(raw) if caching else b""
                own = _facts(path, raw, selection=caching or not selects)
            except text.Unreadable as error:
                own = error.outcome
            selects = selects or (isinstance(own, Facts) and own.selects_device)
            found.append((key, own))
    return found


def together(facts: Sequence[Facts]) -> Facts:
    """What the facts of all files come to."""
    return Facts(
        tuple(sorted({method for fact in facts for method in fact.cuda_methods})),
        any(fact.defers_cuda for fact in facts),
        any(fact.selects_device for fact in facts),
        tuple(sorted({name for fact in facts for name in fact.imported_names})),
    )


def is_candidate(raw: bytes) -> bool:
    """Whether a file with these bytes has to be parsed."""
    return any(word in raw for word in CANDIDATE) or (b"torch" in raw and any(word in raw for word in TORCH_CANDIDATE))
