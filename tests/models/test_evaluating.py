"""``evaluating`` restores the training mode of a network, also after an error."""

import pytest
from torch import nn

from mnemic.models.evaluating import evaluating


@pytest.mark.parametrize("is_training", [True, False])
def test_the_mode_comes_back_even_after_an_error(is_training: bool) -> None:
    network = nn.Sequential(nn.Dropout()).train(is_training)
    with evaluating(network):
        assert not network[0].training
    assert network[0].training == is_training
    with pytest.raises(KeyError), evaluating(network):
        raise KeyError
    assert network.training == is_training
