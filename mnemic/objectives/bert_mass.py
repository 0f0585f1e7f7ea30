"""The seven losses of BERT-MASS, each with a name and a weight.

A unit is what is written to memory: a token or a sentence, as ``model.segments.unit`` says.

Shapes: b documents, s segments, n tokens, p units of a segment, u units of a document, l probed
units, j tokens of a unit, f facts, a slots, r sources of a slot, k hops, h heads, v vocabulary.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.memory.blended import BlendedState
from mnemic.memory.contract import MASKED_SCORE
from mnemic.memory.parts.controller import bernoulli_entropy
from mnemic.models import IGNORE
from mnemic.models.inputs import NOT_A_FACT, OUTSIDE_STORY, SegmentBatch, SegmentOutput, WriteProbe
from mnemic.models.segment_model import ProbeDetail
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import CarriedState, Loss, sum_weighted
from mnemic.objectives.pretraining.masked import TOKEN_MASKING, check_weights, next_sentence_losses
from mnemic.objectives.pretraining.masking import MASKINGS, mask_rows
from mnemic.recipe import build

MIN_PROBABILITY = 1e-9  # keeps the logarithm finite


class BertMassLoss:
    """The weighted sum of the losses pred, seq, ctrl, write, read, mlm and nsp.

    - ``pred``: cross-entropy of the answer's first word; ``seq``: of its other words.
    - ``ctrl``: −log p(u* | s) + ``beta`` · H(u), for the controller that decides what to write.
      u* is 1 for units of supporting facts where the data annotates them, else for units whose
      slots the question's read weighed above average. With ``spare``, other sentences of the same
      story are left out, since the next question may be about them; without it they count as
      background. With ``ranks`` every sentence that some question is about has u* = 1, and p is a
      softmax over all units of the document instead of one sigmoid per unit, H its entropy.
    - ``write``: cross-entropy of the tokens that were just written, decoded from memory, plus
      ``gamma`` · ‖m − m̃‖², how far the slots moved, as a mean over slots.
    - ``read``: the question's hops find its facts, one after another; where no facts are annotated,
      each unit that was just written finds its slot.
    - ``mlm``: masked words, with the help of memory; ``nsp``: next-sentence prediction.

    Each loss is a mean over its targets; a weight of 0 leaves it out. ``masking`` is a kind of
    ``MASKINGS``.
    """

    trains_without_words = True  # by these losses alone, for a response that generates none
    wordless_losses = ("ctrl", "read")

    def __init__(
        self,
        *,
        pred: float = 1.0,
        seq: float = 1.0,
        ctrl: float = 0.0,
        write: float = 0.0,
        read: float = 0.0,
        mlm: float = 0.0,
        nsp: float = 0.0,
        beta: float = 0.01,
        gamma: float = 0.01,
        spare: bool = False,
        rank: bool = False,
        masking: Mapping[str, Any] = TOKEN_MASKING,
    ) -> None:
        self.weights = {"pred": pred, "seq": seq, "ctrl": ctrl, "write": write, "read": read, "mlm": mlm, "nsp": nsp}
        check_weights(self.weights)
        self.active = {name for name, weight in self.weights.items() if weight}
        self.beta, self.gamma, self.spare, self.ranks = beta, gamma, spare, rank
        self.masking = build(MASKINGS, masking)

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        return sum_weighted(self.compute_losses(network, batch), self.weights)._replace(carried=carried)

    def compute_losses(self, network: nn.Module, batch: Any) -> dict[str, Loss]:
        """Compute each loss by name; those of weight 0 are left out."""
        active = self.active
        inputs, mlm_targets = batch.inputs, None
        if "mlm" in active:
            inputs, mlm_targets = self.mask_inputs(batch)
        output = network(inputs, probes=self.choose_probes(batch))
        losses = {}
        if "pred" in active:
            losses["pred"] = Loss(*cross_entropy(output.logits.float(), batch.answers[:, :1]))
        if "seq" in active:
            losses["seq"] = Loss(*cross_entropy(output.rest_logits.float(), batch.answers[:, 1:]))
        if mlm_targets is not None:
            losses["mlm"] = Loss(*cross_entropy(output.masked_logits.float(), mlm_targets))
        if "nsp" in active:
            nsp_losses = next_sentence_losses(output.nsp_logits, batch.next_sentence_labels)
            losses["nsp"] = Loss(nsp_losses.sum(), (batch.next_sentence_labels != IGNORE).sum())
        if output.write_probes:
            facts = compute_unit_facts(output.write_probes, batch.facts, inputs)  # b u
            if "ctrl" in active:
                losses["ctrl"] = self.compute_controller_loss(output, facts, batch.has_facts)
            if "write" in active:
                losses["write"] = write_loss(output.write_probes, self.gamma)
            if "read" in active:
                losses["read"] = read_loss(output, facts, batch.has_facts, batch.max_facts)
        return losses

    def compute_controller_loss(self, output: SegmentOutput, facts: Tensor, has_facts: Tensor) -> Loss:
        """Compute the loss ctrl; ``facts`` b u holds the fact number of each unit."""
        if self.ranks:
            return ranking_loss(output, facts != OUTSIDE_STORY, has_facts, self.beta)
        graded = facts != NOT_A_FACT if self.spare else None
        return controller_loss(output, facts >= 0, has_facts, self.beta, graded)

    def choose_probes(self, batch: Any) -> ProbeDetail:
        """Choose which probes of writing the active losses need."""
        if "write" in self.active or ("read" in self.active and not batch.all_have_facts):
            return "read"
        return "written" if self.active & {"ctrl", "read"} else "none"

    def mask_inputs(self, batch: Any) -> tuple[SegmentBatch, Tensor]:
        """Mask some tokens of the documents; return the inputs and the original ids.

        Tokens that prove an answer are never masked, as the question could not be answered then.
        """
        inputs: SegmentBatch = batch.inputs
        shape = inputs.tokens.shape
        original = inputs.tokens.flatten(1)  # b (s n)
        unmaskable = ~(inputs.text_mask & ~batch.fact_mask).flatten(1)
        masked = mask_rows(
            self.masking, original, unmaskable, batch.word_starts.flatten(1), batch.mask_seeds,
            mask_id=batch.mask_id, random_ids=batch.ordinary_ids,
        )  # fmt: skip
        masked_inputs = inputs._replace(tokens=masked.inputs.view(shape), prediction_mask=masked.mask.view(shape))
        return masked_inputs, masked.targets[masked.targets != IGNORE]


class NextWordLoss:
    """Cross-entropy of the next token at every position, with the help of memory.

    For causal encoders such as ``recurrent``: the memory-augmented network (MANN) alone. The tokens
    of a segment read what was written before that segment.
    """

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        inputs, targets = select_next_tokens(batch)
        return Loss(*cross_entropy(network(inputs).masked_logits.float(), targets), carried)


def select_next_tokens(batch: Any) -> tuple[SegmentBatch, Tensor]:
    """Set the prediction mask to tokens that have a next one; return the next tokens."""
    inputs: SegmentBatch = batch.inputs
    has_next = inputs.mask.roll(-1, 2)
    has_next[..., -1] = False
    mask = inputs.mask & has_next
    return inputs._replace(prediction_mask=mask), inputs.tokens.roll(-1, 2)[mask]


def compute_unit_facts(probes: Sequence[WriteProbe], facts: Tensor, inputs: SegmentBatch) -> Tensor:
    """Compute the fact number of each unit of a document: b u.

    Units are in the order of segments. ``facts`` b s n holds the fact number of each token.
    """
    batch, num_segments, length = facts.shape
    num_units = sum(probe.mask.shape[1] for probe in probes)
    if inputs.sentence_ids is None or num_units == num_segments * length:
        return facts.flatten(1)
    # A token that is in no sentence has no fact either, so it may go to sentence 0.
    sentence_ids = inputs.sentence_ids.flatten(0, 1).clamp(min=0)  # (b s) n
    no_facts = facts.new_full((len(sentence_ids), num_units // num_segments), OUTSIDE_STORY)
    return no_facts.scatter_reduce(1, sentence_ids, facts.flatten(0, 1), "amax").view(batch, num_units)


def controller_loss(
    output: SegmentOutput, needed: Tensor, has_facts: Tensor, beta: float, graded: Tensor | None = None
) -> Loss:
    """Binary cross-entropy of the controller: −log p(u* | s) + β H(u), summed over units.

    In documents that have annotated facts (``has_facts`` b) only ``graded`` units (b u) count
    (None: all of them); in other documents the question's read decides which units were needed.
    """
    logits, valid, is_needed = collect_controller_targets(output, needed, has_facts)
    targets = is_needed.to(logits.dtype)
    losses = nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    counted = valid if graded is None else valid & (graded | ~has_facts.unsqueeze(1))
    return Loss(((losses + beta * bernoulli_entropy(logits)) * counted).sum(), counted.sum())


def ranking_loss(output: SegmentOutput, needed: Tensor, has_facts: Tensor, beta: float) -> Loss:
    """Softmax cross-entropy of the controller: −log p(u* | s) + β H(p), summed over documents.

    It is a mean over the needed units of a document. Which units a memory keeps depends on their
    order alone, so needed units only have to score higher than the others.
    """
    logits, valid, is_needed = collect_controller_targets(output, needed, has_facts)
    log_probs = logits.masked_fill(~valid, MASKED_SCORE).log_softmax(1)  # b u
    is_needed = is_needed & valid
    losses = -(log_probs * is_needed).sum(1) / is_needed.sum(1).clamp(min=1)
    entropies = -(log_probs.exp() * log_probs * valid).sum(1)
    has_needed = is_needed.any(1)
    return Loss(((losses + beta * entropies) * has_needed).sum(), has_needed.sum())


def collect_controller_targets(
    output: SegmentOutput, needed: Tensor, has_facts: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Collect the logits, the mask and the targets of the controller: b u each.

    In documents without annotated facts the needed units are those that the question read.
    """
    logits = torch.cat([controller_logits_of(probe) for probe in output.write_probes], 1).float()
    valid = torch.cat([probe.mask for probe in output.write_probes], 1)
    return (logits, valid, torch.where(has_facts.unsqueeze(1), needed, find_read_units(output, valid)))


def controller_logits_of(probe: WriteProbe) -> Tensor:
    """The controller's logits of one write: b p."""
    logits = probe.written.salience_logits
    if logits is None:
        raise ValueError("the loss ctrl needs a memory with a controller; set objective.ctrl=0")
    return logits


@torch.no_grad()
def find_read_units(output: SegmentOutput, valid: Tensor) -> Tensor:
    """Find the units (b u) in slots that the question's read weighed above average."""
    slot_weights = output.reading.weights.mean((1, 2, 3))  # b a
    mask, (sources, _) = output.state.mask, output.state.origins  # b a, b a r
    mean = slot_weights.sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)
    is_above = (slot_weights > mean) & mask
    unit_numbers = torch.where(is_above.unsqueeze(-1), sources, -1).flatten(1)  # b (a r)
    num_units = valid.shape[1]
    number_of_unit = valid.long().cumsum(1) - 1  # b u, the number of each real unit
    index = torch.where(unit_numbers >= 0, unit_numbers, num_units).clamp(max=num_units)
    is_read = valid.new_zeros(len(valid), num_units + 1).scatter(1, index, True)[:, :num_units]
    return is_read.gather(1, number_of_unit.clamp(min=0)) & valid


def write_loss(probes: Sequence[WriteProbe], gamma: float) -> Loss:
    """Cross-entropy of the written tokens decoded from memory, plus the change of the slots."""
    total, count = torch.zeros(()), torch.zeros((), dtype=torch.long)
    for probe in probes:
        if probe.logits is None or probe.targets is None:
            continue
        valid = probe.targets != IGNORE  # b l j
        log_probs = probe.logits.float().log_softmax(-1).gather(-1, probe.targets.clamp(min=0))
        mean_log_probs = (log_probs * valid).sum(-1) / valid.sum(-1).clamp(min=1)  # b l
        total = total.to(mean_log_probs) - mean_log_probs.sum()
        count = count.to(mean_log_probs.device) + valid.any(-1).sum()
        if isinstance(probe.state_before, BlendedState):
            squared_change = (probe.written.state.slots - probe.state_before.slots).float().square()
            total = total + gamma * squared_change.sum(-1).mean(1).sum()
    return Loss(total, count)


def read_loss(output: SegmentOutput, facts: Tensor, has_facts: Tensor, max_facts: int) -> Loss:
    """Cross-entropy of each hop's fact under its read weights: −log Π π(s_i | q_i, m).

    Hop i should find fact i, in the order of the proof. Hops after the last fact should find that
    fact again; facts after the last hop all belong to that hop. ``facts`` b u numbers at most
    ``max_facts`` facts. If every hop were scored on all facts together, hops that read the first
    fact alone would already have a low loss. In documents without annotated facts, each unit
    that was just written should find its slot in each hop.
    """
    valid = torch.cat([probe.mask for probe in output.write_probes], 1)
    gold = compute_fact_shares(output, facts, valid, max_facts)  # b a f
    weights = output.reading.weights.float().mean(2)[:, :, 0]  # b k a
    hop_facts = assign_hop_facts(facts, weights.shape[1], max_facts).to(gold.dtype)  # b k f
    targets = hop_facts @ gold.mT  # b k a, how much of each slot a hop should find
    has_target = (targets.sum(-1) > 0) & has_facts.unsqueeze(1)  # b k
    log_probs = ((weights * targets).sum(-1) + MIN_PROBABILITY).log()  # b k
    losses = -(log_probs * has_target).sum(1) / has_target.sum(1).clamp(min=1)
    total, count = losses.sum(), has_target.any(1).sum()
    for probe in output.write_probes:
        if probe.reading is None or probe.slots is None:
            continue
        has_slot = (probe.slots >= 0) & ~has_facts.unsqueeze(1)  # b l
        weights = probe.reading.weights.float().mean(2)  # b k l a
        index = probe.slots.clamp(min=0)[:, None, :, None].expand(-1, weights.shape[1], -1, -1)
        log_probs = (weights.gather(-1, index).squeeze(-1) + MIN_PROBABILITY).log().mean(1)  # b l
        total, count = total - (log_probs * has_slot).sum(), count + has_slot.sum()
    return Loss(total, count)


def assign_hop_facts(facts: Tensor, num_hops: int, max_facts: int) -> Tensor:
    """Assign to each hop the facts it should find: b k f."""
    num_facts = facts.amax(1)[:, None, None].clamp(min=NOT_A_FACT) + 1  # b 1 1
    hop = torch.arange(num_hops, device=facts.device)[:, None]
    fact = torch.arange(max_facts, device=facts.device)
    is_remaining = (hop == num_hops - 1) & (fact >= hop)  # these belong to the last hop
    return ((fact == hop.minimum(num_facts - 1)) | is_remaining) & (fact < num_facts)


@torch.no_grad()
def compute_fact_shares(output: SegmentOutput, facts: Tensor, valid: Tensor, max_facts: int) -> Tensor:
    """Compute how much of each slot comes from each fact: b a f.

    ``facts`` b u holds the fact number of each unit.
    """
    sources, shares = output.state.origins  # b a r
    num_units = valid.shape[1]
    number_of_unit = valid.long().cumsum(1) - 1
    index = torch.where(valid, number_of_unit, num_units)
    no_facts = facts.new_full((len(valid), num_units + 1), -1)
    fact_of_number = no_facts.scatter(1, index, facts)[:, :num_units]  # b u
    fact_of_source = fact_of_number.gather(1, sources.flatten(1).clamp(min=0, max=num_units - 1)).view_as(sources)
    fact_of_source = torch.where(sources >= 0, fact_of_source, -1)
    fact = torch.arange(max_facts, device=fact_of_source.device)
    return ((fact_of_source.unsqueeze(-1) == fact) * shares.float().unsqueeze(-1)).sum(2)
