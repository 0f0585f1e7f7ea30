"""Measure how well embedders find the text of a question in other domains than Wikipedia.

    python benchmarks/finding_domains.py pack DATA pools.json.xz
    python benchmarks/finding_domains.py measure pools.json.xz reader-small minilm bge-small=first

DATA has ``squad`` and ``qa``. ``pack`` writes the questions that the recipe ``reader-12`` holds
out, with the texts to search, which ``measure`` needs alone: ``medquad`` and ``dstc9`` (the
held-out half of the pairs; the entity stands before the question, equal answers are one text) and
``nq`` (held-out questions, among the texts of all) and ``squad`` (all questions of dev, among the
paragraphs of train and dev). A model is a shipped network, a checkpoint,
``minilm`` or a Hugging Face folder; ``=first`` takes the state of its first token instead of the
mean, and a text after another ``=`` is put before questions, one after a third before texts. Texts
are cut to 384 tokens. A checkpoint is measured by passages and by nearest sentences (``keys``).
--texts draws so many texts of a pool, with their questions, for a machine without a GPU.
"""

import argparse
import json
import lzma
import random
import time
from pathlib import Path
from typing import Any

import torch
from compress_weights import find_minilm, write_atomically
from torch import Tensor

MAX_TOKENS = 384
TEXTS_PER_CALL = 2048
TOP_K = (1, 5, 10)


def pack(args: argparse.Namespace) -> None:
    """Write the held-out questions and the texts to search."""
    from mnemic.data.text_tasks.examples import QuestionExample
    from mnemic.data.text_tasks.questions import QuestionFiles
    from mnemic.recipe import load_recipe

    spec = load_recipe("reader-12", [])["data"]
    keys = {key: spec[key] for key in ("sources", "normalize", "validation") if key in spec}
    articles = QuestionFiles(**keys, folder=str(args.data)).articles_by_split

    def select(path: str, *splits: str) -> list[QuestionExample]:
        rows = [row for split in splits for row in articles[split]]  # type: ignore[index]
        return [example for row in rows if path in row.source.path for example in row.examples]

    pools = {
        name: make_pool(select(path, "validation"), select(path, *splits))
        for name, path, splits in (
            ("medquad", "medquad_pairs", ("validation",)),
            ("dstc9", "dstc9_faq", ("validation",)),
            ("nq", "nq_qed_train", ("train", "validation", "test")),
        )
    }
    pools["squad"] = make_pool(select("squad/dev", "test"), select("squad/", "train", "validation", "test"))
    write_atomically(args.pools, lzma.compress(json.dumps(pools).encode()))
    for name, pool in pools.items():
        print(f"{name}: {len(pool['questions'])} questions, {len(pool['texts'])} texts")


def make_pool(examples: list[Any], searchable: list[Any]) -> dict[str, Any]:
    """Number the distinct texts, and each question's own."""
    numbers: dict[str, int] = {}
    for example in searchable:
        numbers.setdefault(" ".join(example.text.split()).lower(), len(numbers))
    texts: dict[int, str] = {}
    for example in searchable:
        texts.setdefault(numbers[" ".join(example.text.split()).lower()], example.text)
    gold = [numbers[" ".join(example.text.split()).lower()] for example in examples]
    return {"questions": [example.question for example in examples], "texts": [*texts.values()], "gold": gold}


def draw_pool(pool: dict[str, Any], num_texts: int) -> dict[str, Any]:
    """Draw texts of a pool, the same ones in every run, and keep the questions about them."""
    numbers = random.Random(0).sample(range(len(pool["texts"])), min(num_texts, len(pool["texts"])))
    order = {number: rank for rank, number in enumerate(numbers)}
    pairs = [(question, order[gold]) for question, gold in zip(pool["questions"], pool["gold"]) if gold in order]
    return {
        "questions": [question for question, _ in pairs],
        "texts": [pool["texts"][number] for number in numbers],
        "gold": [gold for _, gold in pairs],
    }


def measure(args: argparse.Namespace) -> None:
    """Print recall of each model in each pool."""
    pools = json.loads(lzma.decompress(args.pools.read_bytes()))
    device = torch.device(args.device)
    report: dict[str, Any] = {}
    for spec in args.models:
        name, pooling, query_prefix, text_prefix = (*spec.split("="), "", "", "")[:4]
        for pool_name, whole_pool in pools.items():
            pool = draw_pool(whole_pool, args.texts) if args.texts else whole_pool
            rows = slice(0, args.limit or None)
            questions = [query_prefix + text for text in pool["questions"][rows]]
            texts = [text_prefix + text for text in pool["texts"]]
            started = time.monotonic()
            cosines = compute_cosines(name, pooling, questions, texts, device)
            gold = torch.tensor(pool["gold"][rows], device=device)
            report.setdefault(spec, {})[pool_name] = {
                kind: recall(values, gold) for kind, values in cosines.items()
            } | {"seconds": round(time.monotonic() - started, 1)}
            print(spec, pool_name, report[spec][pool_name], flush=True)
    if args.out is not None:
        write_atomically(args.out, json.dumps(report, indent=1).encode())


def compute_cosines(
    name: str, pooling: str, questions: list[str], texts: list[str], device: torch.device
) -> dict[str, Tensor]:
    """Compute the cosines of questions and texts, q p, by what texts are compared by."""
    folder = find_minilm() if name == "minilm" else Path(name)
    if (folder / "config.json").is_file():
        vectors = embed_folder(folder, pooling or "mean", questions + texts, device)
        return {"passages": vectors[: len(questions)] @ vectors[len(questions) :].mT}
    from mnemic.checkpoint.folder import load_checkpoint
    from mnemic.encode import prepare_for_inference
    from mnemic.predict.text_tasks import embed_texts
    from mnemic.text import WindowOptions

    checkpoint = load_checkpoint(name)
    prepare_for_inference(checkpoint.network.to(device), "float32")
    options = WindowOptions(MAX_TOKENS, 0, "first")
    question_vectors = embed_texts(checkpoint, questions, options).vectors.to(device)
    passages, keys = [], []
    for start in range(0, len(texts), TEXTS_PER_CALL):
        embedded = embed_texts(checkpoint, texts[start : start + TEXTS_PER_CALL], options, with_sentences=True)
        passages.append(question_vectors @ embedded.vectors.to(device).mT)
        lengths = torch.tensor([len(rows) for rows in embedded.keys], device=device)
        sentences = torch.cat([*embedded.keys]).to(device)
        cosines = (sentences @ question_vectors.mT).float()  # s q
        keys.append(torch.segment_reduce(cosines, "max", lengths=lengths, axis=0, initial=-1.0).mT)
    passage_cosines = torch.cat(passages, 1)
    return {"keys": torch.maximum(torch.cat(keys, 1), passage_cosines), "passages": passage_cosines}


def embed_folder(folder: Path, pooling: str, texts: list[str], device: torch.device) -> Tensor:
    """Embed texts by an encoder of a Hugging Face folder, cut to so many tokens."""
    from mnemic.encode import encode_ragged, load_encoder, prepare_for_inference

    pretrained = load_encoder(folder)
    assert pretrained.tokenizer is not None
    encoder = prepare_for_inference(pretrained.encoder.to(device))
    ids = [row[: MAX_TOKENS - 1] + row[-1:] if len(row) > MAX_TOKENS else row for row in
           pretrained.tokenizer.encode_batch(texts)]  # fmt: skip
    vectors = []
    with torch.inference_mode():
        for start in range(0, len(ids), TEXTS_PER_CALL):
            states = encode_ragged(encoder, ids[start : start + TEXTS_PER_CALL])
            vectors += [(rows[0] if pooling == "first" else rows.mean(0)).float() for rows in states]
        return torch.nn.functional.normalize(torch.stack(vectors), dim=1)


def recall(cosines: Tensor, gold: Tensor) -> dict[str, float]:
    """Compute the share of questions whose text is among the nearest k, in percent."""
    gold_cosines = cosines.gather(1, gold[:, None])
    ranks = (cosines > gold_cosines).sum(1)  # that of the right text, from 0
    return {f"recall@{k}": round(100 * (ranks < k).float().mean().item(), 2) for k in TOP_K} | {
        "mrr@10": round(100 * torch.where(ranks < 10, 1 / (ranks + 1), 0.0).mean().item(), 2)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("pack")
    command.add_argument("data", type=Path)
    command.add_argument("pools", type=Path)
    command.set_defaults(action=pack)
    command = commands.add_parser("measure")
    command.add_argument("pools", type=Path)
    command.add_argument("models", nargs="+")
    command.add_argument("--limit", type=int, default=0, help="questions of each pool; 0: all")
    command.add_argument("--texts", type=int, default=0, help="texts drawn of each pool; 0: all")
    command.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    command.add_argument("--out", type=Path)
    command.set_defaults(action=measure)
    args = parser.parse_args()
    args.action(args)


if __name__ == "__main__":
    main()
