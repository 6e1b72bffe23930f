"""Behaviour of the structural rules: one module a rule, named as the rule."""

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

from tpuport.model import Rule

Check = Callable[[Any, Rule], Iterator[Any]]
"""What a module here defines as `check`: from what a file of the rule's kind was read into to what is found there."""


def check_of(rule: Rule) -> Check:
    """The behaviour of a structural rule."""
    return _check(rule.check)


@cache
def _check(name: str) -> Check:
    found: Check = import_module(f"{__name__}.{name}").check
    return found
