"""Compiled loops over a mask (V,), which says which ids may come next in a row."""

from __future__ import annotations

from common.compiled import compiled_inside
from data.tokens.grammar import Mask


@compiled_inside
def forbid(mask: Mask, begin: int, stop: int) -> None:
    """Mask the ids from `begin` up to, but without, `stop`."""
    for token in range(begin, stop):
        mask[token] = False


@compiled_inside
def keep_only(mask: Mask, token: int, begin: int, stop: int) -> None:
    """Mask the ids from `begin` up to, but without, `stop`, except `token`."""
    forbid(mask, begin, token)
    forbid(mask, token + 1, stop)


@compiled_inside
def keep_or_yield(mask: Mask, before: Mask, due: int, among: Mask) -> None:
    """Undo a rule that leaves nothing, by restoring the mask from before it.

    Args:
        mask: the mask after the rule.
        before: the mask before the rule; updated for the next rule.
        due: the given id that comes next, which no rule may change; -1: there is none.
        among: the part of the mask in which something has to be left.
    """
    if due >= 0:
        mask[due] = before[due]
    is_left = among.any()
    for token in range(len(mask)):
        before[token] = mask[token] if is_left else before[token]
        mask[token] = before[token]
