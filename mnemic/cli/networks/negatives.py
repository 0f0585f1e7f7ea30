"""``mnemic data negatives``: mine hard negatives for contrastive learning."""

import json
from pathlib import Path
from typing import Annotated

from mnemic.cli import options as opt
from mnemic.cli.networks.evaluate import override_data, replace_folder
from mnemic.cli.networks.load import load_network
from mnemic.cli.render.console import print_json, print_text
from mnemic.cli.render.progress import ProgressBars
from mnemic.files import ANYONE, replace_file
from mnemic.recipe import ConfigError, build, kind_name, kind_of


def mine_negatives(
    model: opt.ModelArgument,
    file: Annotated[Path, opt.Option("--out FILE", "File for the negatives (.jsonl).")],
    data: opt.Data = None,
    top_k: Annotated[int, opt.Option("--top", "Wrong texts per pair, at most.")] = 10,
    sets: Annotated[list[str] | None, opt.Option("--set KEY=VALUE", "Change data: data.train_file=faq.")] = None,
    device: opt.Device = "auto",
) -> None:
    """Find the wrong texts that a network finds most similar to each training question.

    The data is that of the network's recipe, pairs of texts (matches) or SQuAD (retrieval). Train
    with --set data.negatives_file=FILE. Texts with an answer, or linked with the right one,
    are left out.

    Example: mnemic data negatives reader --data squad --out negatives.jsonl
    """
    from mnemic.data import DATASETS
    from mnemic.predict.mine_negatives import mine_hard_negatives

    if top_k < 1:
        raise ConfigError(f"--top is at least 1, not {top_k}")
    checkpoint, notes = load_network(model, device)
    spec = dict(checkpoint.recipe["data"])
    if data is not None:
        spec = replace_folder(spec, data, kind_of(DATASETS, spec))
    spec = override_data(spec, sets or [])
    source = build(DATASETS, spec)
    if not hasattr(source, "list_answered_pairs"):
        raise ConfigError(
            f"data of kind {kind_name(spec)!r} has no pairs of texts: set data.kind to matches or retrieval, "
            'such as --set \'data={kind="matches", folder="DIR"}\''
        )
    pairs = source.list_answered_pairs()
    num_negatives = 0
    with replace_file(file, mode=ANYONE) as stream, ProgressBars("texts") as bars:
        mined = mine_hard_negatives(
            checkpoint, pairs, top_k=top_k, on_progress=lambda seen, total: bars.show("embedded", seen, total)
        )
        for pair, texts in zip(pairs, mined):
            row = {"first": pair.first, "second": pair.second, "negatives": texts}
            stream.write((json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8"))
            num_negatives += len(texts)
    print_json({"out": str(file), "pairs": len(pairs), "negatives": num_negatives, "notes": notes})
    print_text(f"{file}  {num_negatives:,} hard negatives for {len(pairs):,} pairs")
