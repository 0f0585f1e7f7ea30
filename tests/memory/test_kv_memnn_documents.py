"""Documents as a key-value memory: forms of keys, entities in plain text, and learning."""

import json
from pathlib import Path

import pytest
import torch
from app_runs import run, sets

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data import DATASETS
from mnemic.data.knowledge.dataset import GeneratedKnowledge, KnowledgeEncoder, KnowledgeFolder
from mnemic.data.knowledge.format import KnowledgeDocument, KnowledgeError, parse_document, read_documents
from mnemic.data.knowledge.slots import (
    EntityMarker,
    KeyValuePair,
    extract_windows,
    make_center_pairs,
    make_sentence_pair,
    make_sentence_slots,
    make_title_pairs,
    make_window_pairs,
    make_window_slots,
)
from mnemic.evaluate.error_rate import compute_task_errors
from mnemic.predict import ask_knowledge_base
from mnemic.recipe import build, load_recipe
from mnemic.text import WordTokenizer
from mnemic.train.run import fit

WORDS = ["a", "film", "by", "[ada]", "with", "[bo]", "in", "it"]
BAT = KnowledgeDocument("The Bat", "The Bat was made by Ada Berg. It won. Ada and Bo Carr (1959) met.")
NAMES = ("The Bat", "Bat", "Ada Berg", "Ada", "Bo Carr", "1959", "It")
KEY_FORMS = ("facts", "sentences", "windows", "centres", "titles")


def write_folder(folder: Path, *, kb: str | None = None) -> Path:
    """Write a folder of documents and questions; entities come from titles and answers."""
    documents = [
        {"title": "The Bat", "text": "Ada Berg made The Bat. It won a prize."},
        {"title": "The Owl", "text": "Bo Carr made The Owl. It won nothing."},
    ]
    lines = "".join(json.dumps(document) + "\n\n" for document in documents)
    (folder / "documents.jsonl").write_text(lines, encoding="utf-8")
    for name in ("dev.txt", "test.txt"):
        questions = "who made [The Bat]\tAda Berg\nwho made [The Owl]\tBo Carr\n"
        (folder / name).write_text(questions * 8, encoding="utf-8")
    if kb is not None:
        (folder / "kb.txt").write_text(kb, encoding="utf-8")
    return folder


# Forms of key --------------------------------------------------------------------------------


def test_a_window_is_the_words_around_an_entity() -> None:
    windows = list(extract_windows(WORDS, {"[ada]", "[bo]"}, radius=2))
    assert [(window.words, window.center, window.start) for window in windows] == [
        (WORDS[1:6], 2, 1),
        (WORDS[3:8], 2, 3),
    ]
    assert [window.words for window in extract_windows(["[ada]"], {"[ada]"})] == [["[ada]"]]
    assert not list(extract_windows(WORDS, set()))


def test_the_pairs_of_each_key_form() -> None:
    window = next(extract_windows(["by", "[ada]", "with"], {"[ada]"}))
    assert make_window_pairs(window, "[the bat]") == [KeyValuePair("by [ada] with", "[ada]")]
    assert make_center_pairs(window, "[the bat]") == [KeyValuePair("by >[ada] with", "[ada]")]
    assert make_title_pairs(window, "[the bat]") == [
        KeyValuePair("<window> by >[ada] with", "[ada]"),
        KeyValuePair("<title> by [ada] with", "[the bat]"),
    ]
    assert make_sentence_pair("Owls hunt.") == KeyValuePair("Owls hunt.", "Owls hunt.")


def test_a_centre_is_another_word_than_the_same_entity_elsewhere() -> None:
    """So a slot is not found by its own value, and neighboring slots differ."""
    source = GeneratedKnowledge(films=9, keys="centres")
    encoder = KnowledgeEncoder(source, source.load().tokenizer)
    film = source.load_facts()[0].subject
    film_id = encoder.tokenizer.id_of(f"[{film}]")
    slots = encoder.select(torch.tensor([[film_id]]))[0]
    assert len(slots)
    values = encoder.base.values[slots, 0]
    keys = encoder.base.keys[slots]
    assert (keys == film_id).any(1).all()
    center_id = encoder.tokenizer.id_of(f">[{film}]")
    assert torch.equal((keys == center_id).any(1), values == film_id)


# Entities in plain text ----------------------------------------------------------------------


def test_entities_are_marked_longest_first_and_as_they_are_spelled() -> None:
    marked = EntityMarker(NAMES).mark_entities(BAT).text
    assert marked == ("[The Bat] was made by [Ada Berg]. [It] won. [Ada] and [Bo Carr] ([1959]) met.")
    plain = KnowledgeDocument("x", "the bat made it; ADA BERG's batty owl")
    assert EntityMarker(NAMES).mark_entities(plain) == plain
    assert marked.replace("[", "").replace("]", "") == BAT.text


def test_a_slot_is_shown_as_the_documents_own_words() -> None:
    marked = EntityMarker(NAMES).mark_entities(BAT)
    entities = {f"[{name.lower()}]" for name in NAMES}
    tokenizer = WordTokenizer.from_texts([marked.text], extra=entities)
    slots = list(make_window_slots(marked, entities, tokenizer, key_form="windows", radius=2))
    assert [slot.pair.value for slot in slots[:2]] == ["[the bat]", "[ada berg]"]
    assert slots[1].text == "The Bat: made by [Ada Berg]. [It] won → Ada Berg"
    for slot in slots:
        quote, _, value = slot.text.removeprefix("The Bat: ").partition(" → ")
        assert quote in marked.text
        assert slot.pair.value == f"[{value.lower()}]"
    (_, title_slot), *_ = zip(*[make_window_slots(marked, entities, tokenizer, key_form="titles", radius=2)] * 2)
    assert title_slot.pair.value == "[The Bat]"
    assert title_slot.text.endswith(" → The Bat")
    sentence_slots = list(make_sentence_slots(marked, entities, tokenizer))
    assert [slot.text for slot in sentence_slots] == [
        "The Bat: [The Bat] was made by [Ada Berg].",
        "The Bat: [It] won.",
        "The Bat: [Ada] and [Bo Carr] ([1959]) met.",
    ]
    assert [slot.pair.key for slot in sentence_slots] == [slot.text.partition(": ")[2] for slot in sentence_slots]


@pytest.mark.parametrize("line", ["[1]", "{", '{"title": "A"}', '{"title": " ", "text": "B"}', "1"])
def test_a_malformed_document_names_file_and_line(line: str, tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_text(f'{{"title": "A", "text": "B"}}\n\n{line}\n', encoding="utf-8")
    with pytest.raises(KnowledgeError) as error_info:
        read_documents(path)
    assert str(error_info.value).startswith(f'{path}, line 3: expected {{"title": "…", "text": "…"}}')
    assert parse_document('{"title": " A ", "text": "B", "id": 3}') == KnowledgeDocument("A", "B")


# A base of documents -------------------------------------------------------------------------


@pytest.mark.parametrize("keys", KEY_FORMS[1:])
def test_only_entities_are_answers_and_every_one_can_be_reached(keys: str, tmp_path: Path) -> None:
    """Also without kb.txt; if it exists, its names are entities too."""
    folder = write_folder(tmp_path)
    spec = {"kind": "knowledge", "folder": str(folder), "keys": keys}
    data = build(DATASETS, spec).load()
    entities = [word for word, is_entity in zip(data.tokenizer.vocabulary, data.test.entities) if is_entity]
    assert entities == ["[ada berg]", "[bo carr]", "[the bat]", "[the owl]"]
    assert data.test.num_unknown == data.test.num_unreachable == 0
    batch = data.test.batch(torch.tensor([0]))
    assert {data.tokenizer.vocabulary[candidate] for candidate in batch.candidates.tolist()} <= set(entities)
    with_kb = build(DATASETS, spec | {"folder": str(write_folder(folder, kb="prize|is_a|thing\n"))}).load()
    assert "[prize]" in with_kb.tokenizer


def test_a_folder_without_documents_says_so(tmp_path: Path) -> None:
    (write_folder(tmp_path) / "documents.jsonl").unlink()
    with pytest.raises(KnowledgeError, match=r"documents\.jsonl where data\.keys is not 'facts'"):
        KnowledgeFolder(folder=str(tmp_path), keys="titles").load()
    with pytest.raises(KnowledgeError, match=r"data\.reach is a number of words from 1 on, not 0"):
        GeneratedKnowledge(films=9, keys="windows", reach=0).load()


@pytest.mark.parametrize(("keys", "max_error"), [("windows", 25.0), ("titles", 12.0)])
def test_a_base_of_documents_is_learned(keys: str, max_error: float, tmp_path: Path) -> None:
    """Test error on unseen questions; guessing one of about 150 entities has 99 % error."""
    overrides = ("model.width=128", "train.epochs=6", "train.batch=32", "train.validate=0")
    data_override = f'data={{kind="generated-knowledge", keys="{keys}"}}'
    list(fit(load_recipe("kv-memnn", [data_override, *overrides]), tmp_path / "run", device="cpu"))
    checkpoint = load_checkpoint(tmp_path / "run")
    source = GeneratedKnowledge(keys=keys)  # type: ignore[arg-type]
    assert compute_task_errors(checkpoint.network, source.load().test)[1] <= max_error
    fact = next(fact for fact in source.load_facts() if fact.relation == "directed_by")
    answer = ask_knowledge_base(checkpoint, f"who directed [{fact.subject}]")
    assert answer.text == fact.object
    assert f"[{fact.object}] directed [{fact.subject}]" in answer.best_evidence(1)[0].text
    assert answer.item == "window"


def test_from_the_command_line(tmp_path: Path) -> None:
    options = sets('data={kind="generated-knowledge", films=20, keys="sentences"}', "train.steps=3")
    out = ("--out", tmp_path / "run", "--device", "cpu")
    assert run("train", "kv-memnn", *options, *out).code == 0
    fact, plot_path = GeneratedKnowledge(films=20).load_facts()[0], tmp_path / "read.svg"
    command = ("story", "ask", "--model", tmp_path / "run", f"who directed [{fact.subject}]")
    result = run(*command, "--plot", plot_path)
    assert result.code == 0, result.err
    assert f"{fact.subject}: " in result.out
    assert "How much of each sentence was read" in plot_path.read_text(encoding="utf-8")
    folder = write_folder(tmp_path)
    evaluate_command = ("evaluate", tmp_path / "run", "--data", folder, "--device", "cpu", "--json")
    data_report = run(*evaluate_command).json["data"]
    assert (data_report["kind"], data_report["keys"]) == ("knowledge", "sentences")
    unknown_keys = run("train", "kv-memnn", *options, *sets("data.keys=pages"), *out, "--fresh")
    assert "one of 'facts', 'sentences', 'windows', 'centres', 'titles'" in unknown_keys.err


def test_more_slots_than_the_memory_holds_are_refused(tmp_path: Path) -> None:
    """Otherwise the slots of the rarest word, which come first, would be evicted first."""
    overrides = ("data={kind='generated-knowledge', slots=300}", "train.steps=1", "model.width=8")
    out = ("--out", tmp_path / "run", "--device", "cpu")
    refused = run("train", "kv-memnn", *sets(*overrides), *out)
    assert refused.code == 2
    assert "but the memory holds 200: set model.memory.slots=300, too" in refused.err
    assert run("train", "kv-memnn", *sets(*overrides, "model.memory.slots=300"), *out).code == 0
