"""A stream of words cut into sentences: against a loop over words, and learned from stories."""

from typing import Any

import pytest
import torch

from mnemic.encode.segmenter import BagSegmenter
from mnemic.evaluate.error_rate import compute_task_errors
from mnemic.models import MemoryNetwork
from mnemic.models.ensemble import StackedNetworks
from mnemic.objectives.ranking import RankingLoss
from mnemic.recipe import ConfigError, load_recipe
from mnemic.reproduce.train_ensemble import create_networks, train_ensemble
from mnemic.train.run import load_data

D, VOCAB = 6, 12


def make(seed: int = 0) -> BagSegmenter:
    torch.manual_seed(seed)
    segmenter = BagSegmenter(D, VOCAB, margin=0.3)
    torch.nn.init.normal_(segmenter.words)
    return segmenter


def story(dice: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Three rows of up to four sentences of up to five words."""
    lengths = torch.randint(0, 6, (3, 4), generator=dice)
    mask = torch.arange(5) < lengths.unsqueeze(2)
    return torch.randint(1, VOCAB, (3, 4, 5), generator=dice) * mask, mask


def slow_cut(segmenter: BagSegmenter, words: list[int], most: int) -> list[list[int]]:
    """Places of words, word after word: seg(c) of all words since the last end."""
    done: list[list[int]] = []
    begun: list[int] = []
    for place in range(len(words)):
        begun.append(place)
        bag = segmenter.words[[words[i] for i in begun]].sum(0)
        if float((segmenter.weight @ bag).detach()) > segmenter.margin:
            done, begun = [*done, begun], []
    whole = [*done, begun] if begun else done
    rest = [place for part in whole[most - 1 :] for place in part]
    return [*whole[: most - 1], rest] if len(whole) > most else whole


def test_a_stream_is_cut_as_in_a_loop_over_its_words() -> None:
    dice = torch.Generator().manual_seed(0)
    counts = set()
    for seed in range(30):
        segmenter = make(seed)
        texts, mask = story(dice)
        cut = segmenter(texts, mask)
        for row in range(3):
            words = texts[row][mask[row]].tolist()
            sentence = mask[row].nonzero()[:, 0].tolist()
            expected = slow_cut(segmenter, words, 4)
            counts.add(len(expected))
            for number in range(4):
                own = expected[number] if number < len(expected) else []
                found = cut.texts[row, number][cut.mask[row, number]].tolist()
                assert found == [words[i] for i in own][:10]
                for told in range(4):
                    share = sum(sentence[i] == told for i in own) / max(1, sentence.count(told))
                    assert abs(float(cut.shares[row, told, number]) - share) < 1e-6
    assert counts >= {1, 2, 3, 4}


def test_a_story_of_nothing_has_no_segments() -> None:
    nothing = torch.zeros(2, 0, 5, dtype=torch.long)
    assert make()(nothing, nothing > 0).mask.shape == (2, 0, 10)
    padding = torch.zeros(2, 3, 5, dtype=torch.long)
    cut = make()(padding, padding > 0)
    assert not cut.mask.any()
    assert cut.shares.eq(0).all()


def test_the_loss_is_over_every_beginning() -> None:
    segmenter, dice = make(), torch.Generator().manual_seed(1)
    texts, mask = story(dice)
    lost = segmenter.margin_loss(texts[0], mask[0])
    for row in range(4):
        words, total = texts[0, row][mask[0, row]].tolist(), 0.0
        for end in range(1, len(words) + 1):
            score = float((segmenter.weight @ segmenter.words[words[:end]].sum(0)).detach())
            total += max(0.0, 0.3 - score if end == len(words) else 0.3 + score)
        torch.testing.assert_close(lost[row].item(), total, rtol=1e-5, atol=1e-5)


def trained(count: int = 600) -> tuple[MemoryNetwork, Any]:
    made = f'data={{kind="generated", tasks=[1], count={count}}}'
    short = ["train.validate=0", "train.epochs=8", "train.schedule.every=4", "train.rate=0.02"]
    recipe = load_recipe("memnn", [made, *short, "model.width=20", "model.segment={kind='bag'}"])
    data = load_data(recipe)
    networks = create_networks(recipe, data, [0])
    pools = [torch.arange(len(data.train))]
    cpu = torch.device("cpu")
    for _ in train_ensemble(recipe, data, networks, seeds=[0], rows_per_run=pools, device=cpu):
        pass
    return networks[0], data


def test_stories_without_full_stops_are_answered() -> None:
    network, data = trained()
    assert compute_task_errors(network, data.test)[1] < 10
    batch = data.test.batch(torch.arange(100))
    told = (batch.inputs.story >= 0).sum()
    with torch.no_grad():
        streamed = network.eval()(batch.inputs)
    assert (streamed.written.weights.amax(2) == 1).sum() > 0.95 * told  # whole sentences
    with torch.no_grad():
        torch.nn.init.zeros_(network.segment.weight)  # every story is one long segment
    assert compute_task_errors(network, data.test)[1] > 40


def test_many_runs_cut_and_learn_as_each_alone() -> None:
    made = 'data={kind="generated", tasks=[1], count=60}'
    recipe = load_recipe("memnn", [made, "train.validate=0", "model.width=8", "model.segment={kind='bag'}"])
    data = load_data(recipe)
    networks = create_networks(recipe, data, [0, 1])
    rows = torch.arange(8).view(2, 4)
    many = StackedNetworks(networks)
    together = many.map_networks(RankingLoss(), data.train.batch(rows)).total
    scores = many.eval()(data.train.batch(rows).inputs).logits
    for run, network in enumerate(networks):
        own = data.train.batch(rows[run])
        torch.testing.assert_close(together[run], RankingLoss()(network.train(), own).total)
        torch.testing.assert_close(scores[run], network.eval()(own.inputs).logits)


def test_segments_and_fusion_do_not_go_together() -> None:
    made = 'data={kind="generated", tasks=[1], count=60}'
    recipe = load_recipe("dmn-plus", [made, "model.segment={kind='bag'}"])
    with pytest.raises(ConfigError, match="do not go together"):
        create_networks(recipe, load_data(recipe), [0])
