"""Names of the libraries around PyTorch that decide on devices: which of their callables take what."""

import ast

from tpuport.analysis.module import Module

ACCELERATORS = {
    "accelerate.Accelerator",
    "accelerate.accelerator.Accelerator",
    "accelerate.PartialState",
    "accelerate.state.PartialState",
}
"""What makes Accelerate choose its device."""

PARSERS = {"transformers.HfArgumentParser", "trl.TrlParser"}
"""What makes training arguments out of a command line."""


def names_training_arguments(module: Module, node: ast.AST) -> bool:
    """Whether an expression names training arguments, or a class of the module's own that is made from them."""
    if is_training_arguments(module.qualified(node)):
        return True
    found = module.lookup(node) if isinstance(node, ast.Name) and node in module.scopes else None
    classes = [binding.node for binding in found[1]] if found else []
    return bool(classes) and all(
        isinstance(own, ast.ClassDef) and any(is_training_arguments(module.qualified(base)) for base in own.bases)
        for own in classes
    )


def is_training_arguments(name: str) -> bool:
    """Whether a qualified name is that of `TrainingArguments`, or of a class of transformers or TRL made from it."""
    root, _, leaf = name.partition(".")
    leaf = leaf.rpartition(".")[2]
    return (root == "transformers" and leaf.endswith("TrainingArguments")) or (
        root == "trl" and leaf.endswith("Config") and leaf != "ModelConfig"
    )


def is_pipeline(name: str) -> bool:
    """Whether a qualified name is that of transformers' `pipeline`."""
    return name in ("transformers.pipeline", "transformers.pipelines.pipeline")


LIGHTNING = ("lightning.", "pytorch_lightning.", "lightning_fabric.", "lightning_lite.")


def is_lightning_command_line(name: str) -> bool:
    """Whether a qualified name is that of what makes a trainer of Lightning from a command line or a file."""
    made = name.endswith(("Trainer.from_argparse_args", ".LightningCLI"))
    return name.startswith(LIGHTNING) and made


def is_lightning_trainer(name: str) -> bool:
    """Whether a qualified name is that of Lightning's `Trainer` or `Fabric`."""
    return name.startswith(LIGHTNING) and name.rpartition(".")[2] in ("Trainer", "Fabric")
