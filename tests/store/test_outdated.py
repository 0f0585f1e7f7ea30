"""A memory with vectors of another version of its embedder: words alone, until reindexed."""

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from mnemic.checkpoint import shipped
from mnemic.checkpoint.atomic_files import hash_file
from mnemic.store import ENGINES, CheckReport, Memory, StoreError
from mnemic.store.contract import EmbeddingModel
from mnemic.store.retrieve.embedders import HashedNgrams, resolve_embedder
from mnemic.store.retrieve.models import load_with_digest
from mnemic.store.retrieve.stored_embedder import StoredEmbedder, choose_successor

TEXTS = ("The lease of the flat ends on 30 June.", "The physician cured her. She was glad of it.")
BY_MEANING = "Which doctor healed the woman?"  # not a word of it is in a text
SEARCH_NOTE = "the vectors of this memory are by another version of the embedder reader-small: it was searched by words"


@pytest.fixture(params=sorted(ENGINES))
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path | str]:
    """An address of a memory by the embedder reader-small, in another version."""
    location = tmp_path / "memory.db" if request.param == "sqlite" else request.getfixturevalue("new_address")()
    with Memory(location, reader=None) as memory:
        for text in TEXTS:
            memory.note(text)
        assert memory.search(BY_MEANING)[0].text == TEXTS[1]
    make_outdated(location)
    return location  # type: ignore[return-value]


def make_outdated(location: Path | str) -> None:
    """Rewrite the hash of a memory's embedder, as another version would have it."""
    with Memory(location) as memory, memory.store.write_session(), memory.store.transaction():
        model = memory.store.get_model()
        assert model is not None
        memory.store.put_fact("model", json.dumps(model._replace(hash="0" * 64)._asdict()))


def test_it_is_searched_by_words_alone_and_says_so(location: Path | str) -> None:
    notices: list[str] = []
    with Memory(location, reader=None, on_notice=notices.append) as memory:
        assert memory.embedder is None
        answer = memory.ask("When does the lease end?")
        assert answer.text == TEXTS[0]
        assert answer.notes[0].startswith(SEARCH_NOTE)
        assert "`mnemic reindex`" in answer.notes[0]
        assert notices == []
        assert [hit.text for hit in memory.search("lease")] == [TEXTS[0]]
        assert notices == [answer.notes[0]]
        assert memory.search(BY_MEANING) == []
    expect_other = pytest.raises(StoreError, match=r"with the embedder reader-small .* and this is no embedder")
    with Memory(location, embedder="none", reader=None) as words, expect_other:  # requested: an error
        words.ask("When does the lease end?")
    with Memory(location, embedder="reader-small", reader=None) as requested:  # the same, but requested
        with pytest.raises(StoreError, match=r"with the embedder reader-small .000000000000.* cannot be compared"):
            requested.ask("When does the lease end?")
        with pytest.raises(StoreError, match="cannot be compared"):
            requested.note("New.")


def test_what_is_remembered_meanwhile_is_embedded_later(location: Path | str, tmp_path: Path) -> None:
    notices: list[str] = []
    path = tmp_path / "a.txt"
    path.write_text("The gardener pruned the roses.", encoding="utf-8")
    with Memory(location, reader=None, on_notice=notices.append) as memory:
        assert [step.outcome for step in memory.remember(path)] == ["new"]
        memory.note("A cat sat on the mat.")
        assert len(notices) == 2
        assert all("new passages have none until `mnemic reindex`" in notice for notice in notices)
        assert [step.outcome for step in memory.remember(path)] == ["unchanged"]
        assert len(notices) == 2  # nothing was embedded
        assert memory.search("roses")[0].text == "The gardener pruned the roses."
        stats = memory.stats()
        assert (stats.passages, stats.vectors) == (4, 2)
        assert memory.check().faults == ("2 passages have no vector; `mnemic reindex` makes them",)
    with Memory(location, reader=None) as second_memory, Memory(location, reader=None) as memory:
        assert second_memory.embedder is None
        assert list(memory.reindex())[-1] == (4, 4)
        assert memory.check() == second_memory.check() == CheckReport()
        for reader in (memory, second_memory):  # also the one that was open meanwhile
            assert reader.search(BY_MEANING)[0].text == TEXTS[1]
            assert reader.search("Who cut the flowers?")[0].text == "The gardener pruned the roses."
            assert reader.ask("When does the lease end?").notes == ()


def test_passages_are_as_long_as_those_of_the_successor() -> None:
    model = resolve_embedder("reader-small").model  # type: ignore[union-attr]
    current, outdated = (StoredEmbedder("here", value, None) for value in (model, model._replace(hash="0")))
    text = "Antidisestablishmentarianism, 1234567 times."
    assert current.count_tokens([text]) == outdated.count_tokens([text]) != HashedNgrams().count_tokens([text])
    assert (current.search_note, current.write_note, current.is_outdated) == ("", "", False)
    assert StoredEmbedder("here", None, None).count_tokens([text]) == HashedNgrams().count_tokens([text])


def test_a_shipped_network_that_no_longer_embeds_has_a_successor() -> None:
    """Two networks ship: ``reader`` reads alone since ``reader-small`` embeds."""
    assert "reader" not in shipped.EMBEDDERS
    model = resolve_embedder("reader").model  # type: ignore[union-attr]
    same = StoredEmbedder("here", model, None)
    assert same.embedder is not None
    assert not same.is_outdated
    outdated = StoredEmbedder("here", model._replace(hash="0"), None)
    assert outdated.successor is not None
    assert outdated.successor.model.name == "reader-small"
    assert choose_successor(EmbeddingModel("minilm", "0", 384)) == "minilm"
    assert choose_successor(None) == "none"
    with pytest.raises(StoreError, match=r"hashed-ngrams .0.* cannot be compared"):  # ours, but no network
        StoredEmbedder("here", EmbeddingModel("hashed-ngrams", "0", 512), None)


def test_a_digest_covers_weights_that_are_shared() -> None:
    for name, is_alone in (("reader", True), ("reader-small", False), ("bert-mass", False)):
        _, digest = load_with_digest(shipped.WEIGHTS / name)
        assert (digest == hash_file(shipped.WEIGHTS / name / "weights.safetensors")) == is_alone


REINDEX = """
import sys
from mnemic.store import Memory, relational
from mnemic.store.retrieve.embedders import HashedNgrams

class Stopping(HashedNgrams):
    def embed_passages(self, texts):
        if len(calls) == 2:
            sys.stdout.write("ready\\n")
            sys.stdout.flush()
            input()  # until it is killed
        calls.append(len(texts))
        return super().embed_passages(texts)

relational.BATCH_SIZE, calls = 16, []
with Memory(sys.argv[1], reader=None) as memory:
    for done, total in memory.reindex(Stopping(64)):
        print(done, total, flush=True)
"""


def test_a_reindex_that_was_killed_goes_on_where_it_was(location: Path | str, tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    records.write_text("".join(f'{{"text": "Record {number} has {number} words."}}\n' for number in range(40)))
    with Memory(location, reader=None) as memory:
        memory.remember(records)
        total = memory.stats().passages
    command = [sys.executable, "-c", REINDEX, str(location)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = list(takewhile(lambda line: line != "ready\n", process.stdout))
    process.kill()
    process.communicate()
    assert [tuple(map(int, line.split())) for line in lines] == [(16, total), (32, total)]
    with Memory(location, reader=None) as memory:
        assert memory.stats().vectors == 32
        assert list(memory.reindex(HashedNgrams(64))) == [(total, total)]
        assert memory.check() == CheckReport()
        assert list(memory.reindex(HashedNgrams(64))) == []
