"""What is logged beside the loss, by hand."""

import torch

from model.config import DecoderConfig
from model.decoder import Decoder
from training.metrics import gradient_norms, learning_rates
from training.optimizer import MuonAdamW


def test_gradients_and_rates_of_a_decoder_by_part():
    torch.manual_seed(0)
    decoder = Decoder(DecoderConfig(11, n_layer=2, n_head=1, n_embd=8, context_length=4))
    for number, weight in enumerate(decoder.parameters()):
        weight.grad = torch.full_like(weight, number + 1.0)
    norms = gradient_norms(decoder.named_parameters())
    assert set(norms) == {"all", "embedding", "layer_1", "layer_2", "norm", "head"}
    whole = torch.cat([weight.grad.flatten() for weight in decoder.parameters()]).norm()
    torch.testing.assert_close(norms["all"], whole)
    second = torch.cat([weight.grad.flatten() for weight in decoder.blocks[1].parameters()]).norm()
    torch.testing.assert_close(norms["layer_2"], second)

    optimizer = MuonAdamW(decoder, learning_rate=0.5, muon_learning_rate=0.25, weight_decay=0.1)
    assert learning_rates(optimizer.param_groups) == {"muon": 0.25, "adamw": 0.5}
