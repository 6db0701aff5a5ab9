"""Dropout of blocks; the layers themselves are held to torch's in test_decoder.py."""

import pytest
import torch

from model.block_dropout import BlockDropout


def test_blocks_drop_out_whole_and_what_is_kept_keeps_the_mean():
    torch.manual_seed(0)
    layer = BlockDropout((2, 1, 3), 0.25).train()
    bag = torch.arange(1, 7, dtype=torch.int32).expand(100, 40, 6)
    weight = layer(bag).view(bag.shape)
    kept = weight != 0
    assert weight.unique().tolist() == pytest.approx([0.0, 4 / 3])
    for block in (slice(0, 2), slice(3, 6)):
        assert (kept[..., block].all(dim=-1) == kept[..., block].any(dim=-1)).all()
    shares = kept[..., [0, 2, 3]].float().mean(dim=(0, 1))
    torch.testing.assert_close(shares, torch.full((3,), 0.75), atol=0.03, rtol=0)
    assert (kept[..., 0] != kept[..., 2]).any()
    assert layer.eval()(bag) is None
