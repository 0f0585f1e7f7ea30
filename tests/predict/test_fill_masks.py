"""Words masked and filled: which ones, by which words, how often, and from which models."""

from collections import Counter, namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import text_files
import torch
from app_runs import run
from huggingface_models import make_transformers_model
from learn_runs import finish
from torch import Tensor, nn

from mnemic.data.text_tasks.augment import AugmentCounts, augment_examples
from mnemic.data.text_tasks.examples import LabeledExample
from mnemic.data.text_tasks.tables import read_labeled
from mnemic.predict.fill_masks import WordFiller, load_masked_model
from mnemic.recipe import ConfigError, load_recipe
from mnemic.text import SubwordTokenizer
from mnemic.text.tokenizers.trainers import TRAINERS

Output = namedtuple("Output", ["logits"])
Logits = namedtuple("Logits", ["masked_logits"])
WORDS = ("red", "green", "blue", "small", "large")
SENTENCES = [f"The {first} house and the {second} ship, number 7!" for first in WORDS for second in WORDS]


class FixedWords(nn.Module):
    """A masked language model that writes some words with fixed probabilities, anywhere."""

    def __init__(self, tokenizer: SubwordTokenizer, shares: dict[str, float]) -> None:
        super().__init__()
        self.logits = torch.full((len(tokenizer),), -20.0)
        for word, share in shares.items():
            self.logits[tokenizer.id_of(word)] = torch.tensor(share).log()
        self.encode = SimpleNamespace(max_length=16)
        self.device = torch.device("cpu")
        self.batches: list[Any] = []

    def forward(self, inputs: Any) -> Output:
        self.batches.append(inputs)
        return Output(Logits(self.logits.expand(len(inputs.answer_mask), -1)))


@pytest.fixture(scope="module")
def tokenizer() -> SubwordTokenizer:
    return TRAINERS["wordpiece"](SENTENCES, vocab=120)


def filler(tokenizer: SubwordTokenizer, shares: dict[str, float], **options: Any) -> WordFiller:
    return WordFiller(FixedWords(tokenizer, shares), tokenizer, **options)


def test_only_words_of_one_token_are_replaced_and_all_else_stays(tokenizer: SubwordTokenizer) -> None:
    """Blanks, punctuation, numbers and words of several tokens are as they were."""
    text = "The  red house,\tunheardofly green (7) blue\n"
    ((filled, count),) = filler(tokenizer, {"small": 1.0}, share=1.0).fill([text], ["0"])
    assert filled == "Small  small small,\tunheardofly small (7) small\n"
    assert count == 5


def test_special_tokens_frame_the_text_and_words_are_masked(tokenizer: SubwordTokenizer) -> None:
    words = filler(tokenizer, {"small": 1.0}, share=1.0)
    words.fill(["red house"], ["0"])
    (inputs,) = words.network.batches
    assert inputs.tokens.tolist() == [[tokenizer.cls, tokenizer.mask, tokenizer.mask, tokenizer.sep]]
    assert inputs.answer_mask.tolist() == [1, 2]
    assert words.fill(["[MASK] [SEP]", "", "7 !"], ["0"] * 3)[1:] == [("", 0), ("7 !", 0)]


def test_the_share_of_masked_words_and_the_likelihood_of_new_ones(tokenizer: SubwordTokenizer) -> None:
    """30 % of the words are masked; the two likeliest are drawn 3 to 1, never the word itself."""
    words = filler(tokenizer, {"small": 0.6, "large": 0.2, "blue": 0.1}, share=0.3, top_k=2)
    text, num_texts = "red green red green red green red green red green", 2000
    filled = words.fill([text] * num_texts, [str(number) for number in range(num_texts)])
    counts = Counter(word for new_text, _ in filled for word in new_text.split())
    assert set(counts) == {"red", "green", "small", "large"}
    num_replaced = counts["small"] + counts["large"]
    assert num_replaced == sum(count for _, count in filled)
    expected = 0.3 * 10 + 0.7**10  # at least one
    assert num_replaced / num_texts == pytest.approx(expected, abs=4 * (0.3 * 0.7 * 10 / num_texts) ** 0.5)
    assert counts["small"] / num_replaced == pytest.approx(0.75, abs=4 * (0.75 * 0.25 / num_replaced) ** 0.5)
    assert min(count for _, count in filled) == 1
    same = filler(tokenizer, {"small": 0.6, "large": 0.3}, share=1.0, top_k=2).fill(["small large"], ["0"])
    assert same == [("large small", 2)]


def test_a_long_text_is_filled_in_windows(tokenizer: SubwordTokenizer) -> None:
    """The network reads at most 16 tokens at once; no word is left out."""
    words = filler(tokenizer, {"small": 1.0}, share=1.0)
    assert words.fill([" ".join(["red"] * 50)], ["0"]) == [(" ".join(["small"] * 50), 50)]
    assert all(inputs.tokens.shape[1] <= 16 for inputs in words.network.batches)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "byte-bpe", "unigram"])
def test_a_new_word_is_a_whole_word(kind: str) -> None:
    """With equal probabilities for all pieces, whatever the kind of tokenizer."""
    tokenizer = TRAINERS[kind](SENTENCES, vocab=300 if kind == "byte-bpe" else 90)
    words = filler(tokenizer, {}, share=1.0, top_k=1000)
    (filled,) = words.fill(["the red house and the blue ship"], ["0"])
    originals, new_words = ["the", "red", "house", "and", "the", "blue", "ship"], filled[0].split()
    assert len(new_words) == 7
    assert all(word.isalpha() for word in new_words)
    assert sum(new_word != word for word, new_word in zip(originals, new_words)) == filled[1]
    assert filled[1] >= 5 or kind == "unigram"  # whose pieces of so few texts are single letters


def test_copies_have_their_labels_no_duplicates_and_are_counted(tokenizer: SubwordTokenizer) -> None:
    """A word has two replacements, of which one is an original; a number has none."""
    words = filler(tokenizer, {"small": 0.5, "large": 0.5}, top_k=2)
    rows = [("red", None, "a"), ("7", None, "b"), ("green", None, "c"), ("large", None, "d")]
    counts, examples = AugmentCounts(), [LabeledExample(*row) for row in rows]
    augmented = list(augment_examples(examples, words.fill, copies=9, seed=0, counts=counts))
    assert [row for row in augmented if row in examples] == examples
    assert set(augmented) - set(examples) == {LabeledExample("small", None, "a")}
    assert counts == AugmentCounts(examples=4, copies=1, duplicates=26, unchanged=9, words=1)


def test_both_texts_of_a_pair_are_filled(tokenizer: SubwordTokenizer) -> None:
    words = filler(tokenizer, {"small": 0.5, "large": 0.5}, top_k=2)
    examples = [LabeledExample("red", "the blue", "a")]
    _, *copies = augment_examples(examples, words.fill, copies=40, seed=0, counts=AugmentCounts())
    assert {copy.text for copy in copies} == {"small", "large"}
    assert {copy.pair for copy in copies} == {"the small", "the large", "small blue", "large blue"}
    again = list(augment_examples(examples, words.fill, copies=40, seed=0, counts=AugmentCounts()))[1:]
    assert again == copies  # the seed decides
    other = list(augment_examples(examples, words.fill, copies=40, seed=1, counts=AugmentCounts()))[1:]
    assert other != copies


def test_a_trained_model_fills_from_the_command_line(tmp_path: Path) -> None:
    """A run of bert-pretrain; the new file has other texts and is read as labeled texts."""
    text_files.corpus(tmp_path / "corpus", 60)
    options = ["model.width=16", "model.encode.stack.depth=1", "train.matmul=float32", "data.length=32"]
    options += ['data.tokenizer={kind="wordpiece", vocab=200}', "train.batch=8", "train.steps=2", "train.validate=0"]
    model = finish(load_recipe("bert-pretrain", [*options, f"data.folder={tmp_path / 'corpus'}"]), tmp_path / "run")
    texts = tmp_path / "texts.tsv"
    texts.write_text('review\tstars\nThe ant eats "honey".\t1\nThe cat sleeps.\t0\n', encoding="utf-8")
    columns = ("--column", "text=review", "--column", "label=stars")
    command = ("data", "augment", texts, "--model", model, "--out", tmp_path / "new.jsonl", *columns, "--copies", 3)
    report = run(*command, "--json").json
    rows = read_labeled(tmp_path / "new.jsonl", {}, paired=False)
    assert report["examples"] == 2
    assert len(rows) == 2 + report["copies"]
    assert report["copies"] + report["duplicates"] + report["unchanged"] == 6
    assert rows[0] == LabeledExample('The ant eats "honey".', None, "1")
    first = (tmp_path / "new.jsonl").read_bytes()
    run(*command)
    assert (tmp_path / "new.jsonl").read_bytes() == first
    assert "--out is a .jsonl file" in run(*command[:6], tmp_path / "new.tsv").err
    assert "--column is ROLE=NAME" in run(*command, "--column", "review").err
    assert "share must be above 0" in run(*command, "--share", "0").err


def test_a_hugging_face_model_gives_its_own_logits(tmp_path: Path) -> None:
    tokenizer = TRAINERS["wordpiece"](SENTENCES, vocab=60)
    model = make_transformers_model("bert", "ForMaskedLM")
    model.save_pretrained(tmp_path / "mlm")
    tokenizer.save(tmp_path / "mlm")
    network, loaded = load_masked_model(tmp_path / "mlm")
    assert loaded == tokenizer
    words = WordFiller(network, loaded, share=1.0)
    windows = [([tokenizer.cls, tokenizer.mask, 9, tokenizer.sep], [1]), ([tokenizer.cls, 8, tokenizer.mask], [2])]
    expected: list[Tensor] = [model(torch.tensor([ids])).logits[0, masked[0]].detach() for ids, masked in windows]
    torch.testing.assert_close(words.compute_logits(windows), torch.stack(expected), atol=1e-4, rtol=1e-4)
    assert words.fill(["the red house"], ["0"])[0][1] == 2  # "house" has several tokens
    make_transformers_model("bert", "Model").save_pretrained(tmp_path / "plain")
    tokenizer.save(tmp_path / "plain")
    with pytest.raises(ConfigError, match=r"no masked-language-model head"):
        load_masked_model(tmp_path / "plain")


def test_models_without_masked_words_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"responds with 'spans': take a masked language model, such as a run of"):
        load_masked_model(Path("reader"))
