"""Plain words for what torch.compile stumbles over: what happens, what to do, and the lint rule that finds it.

Graph breaks are named by their identifier in torch's registry (torch/_dynamo/graph_break_registry.json). Kinds that
are not here keep Dynamo's own account, which the report shows in any case.
"""

from dataclasses import dataclass

from tpuport.checks.missing_kernel import INSTEAD
from tpuport.profile.places import Place


@dataclass(frozen=True, slots=True)
class Advice:
    """What happens in plain words, the edit that ends it, and the name of the lint rule that finds it, if any."""

    plain: str = ""
    edit: str = ""
    rule: str = ""


NO_ADVICE = Advice()
NOTHING_TO_DO = "Nothing to do, as long as it does not go on changing."

_READS_VALUE = "Python reads a value out of a tensor, so the graph ends and the host waits for the device"
_KEEP_TENSOR = "Keep it a tensor inside the model, and read it after the step, every so many steps."
_BREAKS = {
    "GB0007": Advice(
        "the function called here is one that torch.compile never looks into",
        "Call it outside the compiled model, or register it as an operator with torch.library.custom_op.",
    ),
    "GB0008": Advice(
        "the function called here is one that torch.compile never looks into",
        "Call it outside the compiled model, or register it as an operator with torch.library.custom_op.",
    ),
    "GB0014": Advice(
        "nn.RNN, nn.GRU and nn.LSTM are left out of graphs",
        "Unroll the recurrence with cells (nn.LSTMCell), or leave this module uncompiled.",
    ),
    "GB0025": Advice("the code itself asks for a break", "Take torch._dynamo.graph_break() out."),
    "GB0033": Advice(_READS_VALUE, _KEEP_TENSOR, "host-sync"),
    "GB0034": Advice(
        "an assertion looks at a tensor's value", "Use torch._assert_async, or check outside the compiled model."
    ),
    "GB0036": Advice(
        "the size of the result depends on the values in it, and a graph needs sizes that are known",
        "Work with a mask of fixed size (torch.where), or pass a fixed size where the operation takes one.",
        "dynamic-shape",
    ),
    "GB0037": Advice(
        "the size of the result depends on the values in it, and a graph needs sizes that are known",
        "Work with a mask of fixed size (torch.where), or pass a fixed size where the operation takes one.",
        "dynamic-shape",
    ),
    "GB0059": Advice(
        "a builtin with an effect, such as print, can't be part of a graph",
        "Move it out of the compiled model, or put it under `if not torch.compiler.is_compiling():`.",
    ),
    "GB0098": Advice(
        "the function called here is marked with torch.compiler.disable",
        "Take the mark away if it is yours; else call the function outside the compiled model.",
    ),
    "GB0099": Advice(
        "the function called here is marked with torch.compiler.disable",
        "Take the mark away if it is yours; else call the function outside the compiled model.",
    ),
    "GB0105": Advice(_READS_VALUE, "Stay with torch's own operations instead of numpy's.", "host-sync"),
    "GB0109": Advice(_READS_VALUE, _KEEP_TENSOR, "host-sync"),
    "GB0124": Advice(_READS_VALUE, _KEEP_TENSOR, "host-sync"),
    "GB0170": Advice(
        "Python decides by a tensor's value which way to go, so the graph ends and the host waits for the device",
        "Compute both ways and choose with torch.where, or use torch.cond; where a Python number says it, ask that.",
        "host-sync",
    ),
    "GB0179": Advice("copy.deepcopy can't be part of a graph", "Copy before the compiled model is called."),
    "GB0291": Advice(
        "logging can't be part of a graph",
        "Log outside the model, or add the function to torch._dynamo.config.ignore_logging_functions.",
    ),
}


def missing_kernel(operation: str, what_happens: str = "") -> Advice:
    """Return what to do about an operation of aten that a TPU has no kernel for."""
    instead = INSTEAD.get(operation)
    edit = f"Write `{instead}` in its place." if instead else "Write it with others, or compute this on the CPU."
    return Advice(what_happens, edit, "missing-kernel")


def mixed_types(operation: str) -> str:
    """Return what to do about an operation of aten that torch_tpu can't lower for inputs of different types."""
    remedy = (
        "Give it float32, as autocast does on CUDA: `norm(x.float())`. `tpuport lint` finds it: half-layer-norm."
        if operation == "layer_norm"
        else "Convert them to one type before."
    )
    return f"torch_tpu 0.2.0 cannot compile `{operation}` where its inputs and weights differ in type. {remedy}"


_IN_LIBRARY = {
    "torch/distributions/": "Make the distribution with validate_args=False: what it checks are values.",
    "_detect_is_causal_mask": "Say whether the mask is causal: `encoder(src, mask=mask, is_causal=True)`, or False. "
    "Without it nn.TransformerEncoder and nn.TransformerDecoder compare the mask with a causal one, value by value.",
}
"""What to write where a function of an installed package reads values, by its name or the beginning of its file."""


def for_break(identifier: str, library: Place | None = None) -> Advice:
    """Return the advice for a kind of graph break; an empty one for a kind without.

    Where it happens in `library`, a line of an installed package, it is the call that can be changed.
    """
    advice = _BREAKS.get(identifier, NO_ADVICE)
    return inside_library(advice, library) if library and advice.rule else advice


def inside_library(advice: Advice, library: Place) -> Advice:
    """Return what to do where not the user's line but `library`, one of an installed package, reads a value."""
    edit = next(
        (edit for name, edit in _IN_LIBRARY.items() if name == library.function or library.file.startswith(name)),
        "It is not your line that does this: see whether another argument leads around it, or call it less often.",
    )
    return Advice(advice.plain, edit)


BATCH_SIZE = Advice(
    "a batch of another size, most often the last one of an epoch",
    "Give the DataLoader drop_last=True, or pad the batch to its full size.",
    "partial-batch",
)
OTHER_BATCH = Advice(
    "another part of the script, such as evaluation, calls the model with another batch size",
    "Nothing to do, as long as it does not go on changing; one batch size for all saves the compilation.",
)
LENGTH = Advice(
    "an input of another length",
    "Pad to one of a few fixed lengths (buckets): one compilation each.",
    "dynamic-shape",
)
GROWING_CACHE = Advice(
    "a cache of keys and values that grows by each token",
    'Generate with a cache of fixed size: `model.generate(..., cache_implementation="static")`.',
    "dynamic-shape",
)
NUMBER = Advice(
    "a Python number that changes is part of the compiled program",
    "Pass it as a tensor (`torch.tensor(value, device=device)`), or keep it the same.",
)
GRADIENTS = Advice("training and evaluation are compiled apart", NOTHING_TO_DO)
TRAINING = Advice("a model in training and in evaluation is compiled apart", NOTHING_TO_DO)
INPUT_GRADIENT = Advice(
    "an input that gradients flow back to, and one that none do (data, or what detach() gave), are compiled apart",
    NOTHING_TO_DO,
)
OPTIONAL = Advice(
    "a value that is there in some calls only is part of the compiled program",
    "Give it in every call, or make it before the first; once is nothing to care about.",
)
AUTOCAST = Advice(
    "a model under autocast and one without it, or in another type, are compiled apart",
    "Call it under the same autocast everywhere, evaluation included.",
)
DIMENSIONS = Advice("an input with more or fewer dimensions", "Give the model the same dimensions in every call.")
LAYOUT = Advice(
    "the same sizes lie in memory in another way, as those of a view do (a slice, a transpose)",
    "Give the model a copy that lies as all others do: `x.clone(memory_format=torch.contiguous_format)`.",
)
TYPE = Advice("an input of another type", "Convert inputs to one dtype and device before the model is called.")
INPUT = Advice(
    "the step waits for its next batch",
    "Let workers prepare batches while the device computes: DataLoader(num_workers=…, persistent_workers=True); make "
    "what they do once in advance where it is the same in every epoch.",
)
BEFORE_MODEL = Advice(
    "it passes between a step's beginning and the first call of a model",
    "See what stands before this line: make batches that come from an iterator or a function in the workers of a "
    "DataLoader, or in a thread that stays one ahead, and log every so many steps.",
)
ON_CPU_FALLBACK = "no kernel for it on a TPU, and the fallback to the CPU is on: it goes to the host and back"
ON_CPU_FROM_DEVICE = Advice(
    "computed on the CPU with values that came from the device in the same step",
    "Compute it on the device, before the values are moved.",
    "host-sync",
)
ON_CPU_IN_MODEL = Advice(
    "a model computes it on the CPU in every step", "Make it on the device: `device=x.device`, or a buffer made once."
)
HOST_READ = Advice(
    "Python reads a tensor's value",
    "Keep it a tensor (sum losses on the device), and read it every so many steps.",
    "host-sync",
)
HOST_PRINT = Advice("a tensor is printed", "Print every so many steps.", "host-sync")
HOST_COPY = Advice("a tensor is copied to the CPU", "Copy every so many steps, or after the loop.", "host-sync")
HOST_SELECTION = Advice(
    "the size of the result depends on values",
    "Keep the size fixed: torch.where with the mask, or a weight of 0, in place of a selection.",
    "dynamic-shape",
)
HOST_SIZE = Advice(
    "the size of the result depends on values",
    "Give it the size: num_classes of one_hot, output_size of repeat_interleave, minlength of bincount.",
)
HOST_INDEX = Advice(
    "an index is read from the device",
    "For a mask use torch.where, or a weight of 0. For one row or a slice, keep the number in Python, or take rows "
    "with index_select.",
)
HOST_SAVE = Advice("what is saved is copied to the CPU", "Save every so many steps.")
