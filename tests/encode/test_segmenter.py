"""Cutting a stream of words into sentences: against a plain loop, and learned from stories."""

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


def make_segmenter(seed: int = 0) -> BagSegmenter:
    torch.manual_seed(seed)
    segmenter = BagSegmenter(D, VOCAB, margin=0.3)
    torch.nn.init.normal_(segmenter.words)
    return segmenter


def random_story(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Make three rows of up to four sentences of up to five words."""
    lengths = torch.randint(0, 6, (3, 4), generator=generator)
    mask = torch.arange(5) < lengths.unsqueeze(2)
    return torch.randint(1, VOCAB, (3, 4, 5), generator=generator) * mask, mask


def reference_cut(segmenter: BagSegmenter, words: list[int], max_segments: int) -> list[list[int]]:
    """Cut word after word: a segment ends where seg(c) of its words exceeds the margin."""
    done: list[list[int]] = []
    current: list[int] = []
    for position in range(len(words)):
        current.append(position)
        bag = segmenter.words[[words[index] for index in current]].sum(0)
        if float((segmenter.weight @ bag).detach()) > segmenter.margin:
            done, current = [*done, current], []
    segments = [*done, current] if current else done
    rest = [position for segment in segments[max_segments - 1 :] for position in segment]
    return [*segments[: max_segments - 1], rest] if len(segments) > max_segments else segments


def test_a_stream_is_cut_as_in_a_loop_over_its_words() -> None:
    generator = torch.Generator().manual_seed(0)
    counts = set()
    for seed in range(30):
        segmenter = make_segmenter(seed)
        texts, mask = random_story(generator)
        cut = segmenter(texts, mask)
        for row in range(3):
            words = texts[row][mask[row]].tolist()
            sentence_ids = mask[row].nonzero()[:, 0].tolist()
            expected = reference_cut(segmenter, words, 4)
            counts.add(len(expected))
            for segment in range(4):
                word_indices = expected[segment] if segment < len(expected) else []
                segment_words = cut.texts[row, segment][cut.mask[row, segment]].tolist()
                assert segment_words == [words[index] for index in word_indices][:10]
                for sentence_index in range(4):
                    share = sum(sentence_ids[index] == sentence_index for index in word_indices) / max(
                        1, sentence_ids.count(sentence_index)
                    )
                    assert abs(float(cut.shares[row, sentence_index, segment]) - share) < 1e-6
    assert counts >= {1, 2, 3, 4}


def test_a_story_of_nothing_has_no_segments() -> None:
    no_sentences = torch.zeros(2, 0, 5, dtype=torch.long)
    assert make_segmenter()(no_sentences, no_sentences > 0).mask.shape == (2, 0, 10)
    padding = torch.zeros(2, 3, 5, dtype=torch.long)
    cut = make_segmenter()(padding, padding > 0)
    assert not cut.mask.any()
    assert cut.shares.eq(0).all()


def test_the_loss_is_summed_over_all_prefixes() -> None:
    segmenter, generator = make_segmenter(), torch.Generator().manual_seed(1)
    texts, mask = random_story(generator)
    losses = segmenter.margin_loss(texts[0], mask[0])
    for row in range(4):
        words, total = texts[0, row][mask[0, row]].tolist(), 0.0
        for end in range(1, len(words) + 1):
            score = float((segmenter.weight @ segmenter.words[words[:end]].sum(0)).detach())
            total += max(0.0, 0.3 - score if end == len(words) else 0.3 + score)
        torch.testing.assert_close(losses[row].item(), total, rtol=1e-5, atol=1e-5)


def train_network(count: int = 600) -> tuple[MemoryNetwork, Any]:
    data_override = f'data={{kind="generated", tasks=[1], count={count}}}'
    overrides = ["train.validate=0", "train.epochs=8", "train.schedule.every=4", "train.rate=0.02"]
    recipe = load_recipe("memnn", [data_override, *overrides, "model.width=20", "model.segment={kind='bag'}"])
    data = load_data(recipe)
    networks = create_networks(recipe, data, [0])
    rows_per_run = [torch.arange(len(data.train))]
    cpu = torch.device("cpu")
    for _ in train_ensemble(recipe, data, networks, seeds=[0], rows_per_run=rows_per_run, device=cpu):
        pass
    return networks[0], data


def test_stories_without_full_stops_are_answered() -> None:
    network, data = train_network()
    assert compute_task_errors(network, data.test)[1] < 10
    batch = data.test.batch(torch.arange(100))
    num_sentences = (batch.inputs.story >= 0).sum()
    with torch.no_grad():
        streamed = network.eval()(batch.inputs)
    assert (streamed.written.weights.amax(2) == 1).sum() > 0.95 * num_sentences  # whole sentences
    with torch.no_grad():
        torch.nn.init.zeros_(network.segment.weight)  # every story is one long segment
    assert compute_task_errors(network, data.test)[1] > 40


def test_stacked_networks_cut_and_learn_like_single_ones() -> None:
    data_override = 'data={kind="generated", tasks=[1], count=60}'
    recipe = load_recipe("memnn", [data_override, "train.validate=0", "model.width=8", "model.segment={kind='bag'}"])
    data = load_data(recipe)
    networks = create_networks(recipe, data, [0, 1])
    rows = torch.arange(8).view(2, 4)
    stacked = StackedNetworks(networks)
    together = stacked.map_networks(RankingLoss(), data.train.batch(rows)).total
    logits = stacked.eval()(data.train.batch(rows).inputs).logits
    for run, network in enumerate(networks):
        run_batch = data.train.batch(rows[run])
        torch.testing.assert_close(together[run], RankingLoss()(network.train(), run_batch).total)
        torch.testing.assert_close(logits[run], network.eval()(run_batch.inputs).logits)


def test_segments_and_fusion_do_not_go_together() -> None:
    data_override = 'data={kind="generated", tasks=[1], count=60}'
    recipe = load_recipe("dmn-plus", [data_override, "model.segment={kind='bag'}"])
    with pytest.raises(ConfigError, match="do not go together"):
        create_networks(recipe, load_data(recipe), [0])
