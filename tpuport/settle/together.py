"""What a file does through PyTorch/XLA moves together or not at all: its tensors and those of a TPU do not mix."""

from collections.abc import Sequence

from tpuport.analysis.xla import AREA
from tpuport.draft import Context, Draft, Role

TOGETHER = "it moves together with"
"""How the reason begins of what could move, if all else did."""

CHAIN = -1
"""The number of the chain that a file's move away from PyTorch/XLA is."""


def _members(drafts: Sequence[Draft]) -> list[Draft]:
    return [draft for draft in drafts if draft.rule.area == AREA and draft.role is not Role.NEUTRAL]


def hold(context: Context, drafts: Sequence[Draft]) -> None:
    """Take the edits from the file's move if any part of it, or of another file, stays."""
    members = _members(drafts)
    staying = [draft for draft in members if not draft.edits]
    elsewhere = context.project.stays_on_xla
    if not staying and not elsewhere:
        return
    reason = f"{TOGETHER} {elsewhere}, which can not move yet"
    if staying:
        first = min(staying, key=lambda draft: context.module.span(draft.node))
        line = context.module.span(first.node).line
        reason = f"{TOGETHER} line {line}, which can not move yet"
    for draft in members:
        if draft.edits:
            draft.edits = draft.own_guard = ()
            draft.role, draft.reason = Role.BLOCKS, reason


def join(context: Context, drafts: Sequence[Draft], chain_of: dict[int, int]) -> None:
    """Make the file's move one chain, with the tests for CUDA that move with a part of it; stop it if one stays."""
    members = _members(drafts)
    joined = {chain_of[id(draft)] for draft in members if id(draft) in chain_of}
    whole = [draft for draft in drafts if draft in members or chain_of.get(id(draft)) in joined]
    if any(not draft.edits for draft in members):
        hold(context, drafts)
        for draft in whole:
            if draft.edits:
                draft.edits = ()
                draft.reason = f"{TOGETHER} what this file does through PyTorch/XLA, which stays"
        return
    for draft in whole:
        chain_of[id(draft)] = CHAIN
