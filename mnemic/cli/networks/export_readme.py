"""Write the README.md of an exported folder: how to use it, where it came from."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mnemic.encode import Pretrained

MAX_TOKENS_KEY = "max_answer_tokens"  # of config.json: the span head that mnemic wrote
INTRO = """Exported by mnemic {version} (`mnemic export {name} FOLDER`) as {family}.
In the examples, `folder` is the path of this folder.
"""

QUESTIONS = """
## Answer questions

`AutoModelForQuestionAnswering` has the start and end logits of mnemic's reader for every token of
the passage. `AutoModelForSequenceClassification` has its two logits of "no answer", for which
Hugging Face's question-answering head has no weights: there they are those of `[CLS]`, which this
network was not trained for. Each class says that it leaves the other's weights out.

```python
import torch
from transformers import AutoModelForQuestionAnswering, AutoModelForSequenceClassification, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(folder)
reader = AutoModelForQuestionAnswering.from_pretrained(folder)
decliner = AutoModelForSequenceClassification.from_pretrained(folder)


def answer(question, passage):  # the answer, or "", and the probability that there is none
    inputs = tokenizer(question, passage, return_tensors="pt", return_offsets_mapping=True)
    offsets = inputs.pop("offset_mapping")[0].tolist()
    places = [place for place, part in enumerate(inputs.sequence_ids()) if part == 1]
    with torch.no_grad():
        spans, none = reader(**inputs), decliner(**inputs).logits[0]
    logits = torch.stack([spans.start_logits[0, places], spans.end_logits[0, places]])
    starts, ends = torch.cat([none.unsqueeze(1), logits], 1).softmax(1)  # first "no answer"
    scores = (starts[1:, None] * ends[None, 1:]).triu().tril({max_tokens} - 1)
    first, last = divmod(int(scores.argmax()), len(places))
    declines = float(starts[0] * ends[0] / (starts[0] * ends[0] + scores.max()))
    text = passage[offsets[places[first]][0] : offsets[places[last]][1]]
    return "" if declines > 0.5 else text, declines
```

An answer has at most {max_tokens} tokens, question and passage together {length}. Read a longer
passage in windows that overlap; the probability of "no answer" is then the lowest of all windows.
"""

EMBEDDING = """
## Embed texts

```python
import torch
from transformers import AutoModel, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(folder)
encoder = AutoModel.from_pretrained(folder)


def embed(text):  # a vector of length 1, as by mnemic
    inputs = tokenizer(text, return_tensors="pt", return_special_tokens_mask=True)
    is_text = inputs.pop("special_tokens_mask")[0] == 0
    with torch.no_grad():
        states = encoder(**inputs).last_hidden_state[0]
    return torch.nn.functional.normalize(states[is_text].mean(0), dim=0)
```

The mean is over the tokens **without `[CLS]` and `[SEP]`**; over all tokens, which is the usual
pooling of other models, vectors differ from those of `mnemic.load(...).embed`.
"""


def build_readme(pretrained: "Pretrained", name: str) -> str:
    """Build the README of an exported network, with a shipped network's license and sources."""
    from mnemic import __version__
    from mnemic.checkpoint import shipped
    from mnemic.encode.huggingface.shape import shape_of_encoder

    is_kept = pretrained.config.get("model_type") == pretrained.family  # with its heads
    max_tokens = pretrained.config.get(MAX_TOKENS_KEY) if is_kept else None
    header, sections = ["library_name: transformers"], []
    if name in shipped.list_networks():
        card = shipped.read_card(name)
        header.append(f"license: {card['license'].lower()}")
        lines = [f"- {source['role']}: {source['name']}, {source['license']}" for source in card["sources"]]
        sections.append("\n".join(["\n## License and sources\n", f"{card['license']}. Made from:\n", *lines, ""]))
    if max_tokens is not None:
        header.append("pipeline_tag: question-answering")
        length = shape_of_encoder(pretrained.encoder).length
        sections.append(QUESTIONS.replace("{max_tokens}", str(max_tokens)).replace("{length}", str(length)))
    if pretrained.tokenizer is not None:
        sections.append(EMBEDDING)
    title = Path(name).name
    intro = INTRO.format(version=__version__, name=title, family=pretrained.family)
    return "\n".join(["---", *header, "---", "", f"# {title}", "", intro]) + "".join(sections)
