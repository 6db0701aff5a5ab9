"""Loops over what may come next in a row: a mask (V,) of ids."""

from __future__ import annotations

from common.compiled import compiled_inside
from data.tokens.grammar import Mask


@compiled_inside
def forbid(mask: Mask, begin: int, stop: int) -> None:
    """Mask ids from one to before another."""
    for token in range(begin, stop):
        mask[token] = False


@compiled_inside
def any_of(mask: Mask, begin: int, stop: int) -> bool:
    """Return whether any id may come next, from one to before another."""
    is_any = False
    for token in range(begin, stop):
        is_any |= mask[token]
    return is_any


@compiled_inside
def keep_or_yield(mask: Mask, before: Mask, due: int, among: Mask) -> None:
    """Let a rule yield where it leaves nothing.

    Args:
        mask: as the rule has narrowed it.
        before: the mask before that, which becomes as it is then.
        due: the given id that comes next, which stays as it was; -1: there is none.
        among: the part of the mask of which something has to be left.
    """
    if due >= 0:
        mask[due] = before[due]
    is_left = any_of(among, 0, len(among))
    for token in range(len(mask)):
        before[token] = mask[token] if is_left else before[token]
        mask[token] = before[token]
