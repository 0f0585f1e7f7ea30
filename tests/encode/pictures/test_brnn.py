"""The bidirectional network against its equations, word by word."""

import torch
from torch import nn

from mnemic.encode.pictures.brnn import BRNNEncoder


def test_states_are_those_of_the_equations() -> None:
    torch.manual_seed(0)
    encoder = BRNNEncoder(8, 10)
    for layer in (encoder.forth, encoder.back):
        nn.init.normal_(layer.weight, std=0.3)
        nn.init.normal_(layer.bias)
    tokens = torch.tensor([[3, 1, 4, 1]])
    states = encoder(tokens, tokens > 0)
    inputs = [encoder.input(encoder.embeddings.tokens[token]).relu() for token in tokens[0]]
    onward, backward = torch.zeros(8), torch.zeros(8)
    from_start, from_end = [], []
    for step in range(4):
        onward = (inputs[step] + encoder.forth(onward)).relu()
        backward = (inputs[3 - step] + encoder.back(backward)).relu()
        from_start.append(onward)
        from_end.insert(0, backward)
    expected = [encoder.out(a + b).relu() for a, b in zip(from_start, from_end)]
    torch.testing.assert_close(states[0], torch.stack(expected))
