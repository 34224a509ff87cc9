"""The laws every learner obeys, one function each. `wanderlearn.checks` tries them and reports.

A law runs a learner on small random sequences and raises `BrokenError` with what it found: what is broken,
where, and by how much. What to do about it stands in `LAWS`.
"""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, Final, NamedTuple

import torch
import torch.nn.functional as F
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from wanderlearn.errors import WanderError
from wanderlearn.learners.answer import UNUSED, Answers
from wanderlearn.learners.state import state_from_tensors, tensors_of_state
from wanderlearn.trials import LENGTH, ROWS, SETTINGS, Trial, difference, stack, until
from wanderlearn.worlds.sequence import NEW, UNLABELED

__all__ = ["LAWS", "BrokenError", "Law"]

LARGE_NEGATIVE: Final = UNUSED / 10


class BrokenError(Exception):
    """A law is broken; the message is what was found."""


class Law(NamedTuple):
    """One law: its short name, the law in words, what to do when it is broken, and how to try it."""

    name: str
    title: str
    advice: str
    test: Callable[[Trial], None]


def _shapes_law(trial: Trial) -> None:
    for setting, features, given in trial.settings():
        answer, _ = trial.learner.step(trial.begin(ROWS), features[:, 0], given[:, 0])
        for call, got, lead in (
            ("Called on whole sequences", trial.whole(features, given), (ROWS, LENGTH)),
            ("`step`", answer, (ROWS,)),
        ):
            for name, right in (("scores", (*lead, trial.slots)), ("novelty", lead)):
                part = getattr(got, name, None)
                if not isinstance(part, Tensor):
                    raise BrokenError(f"{call} gives no tensor `{name}` but a {type(got).__name__}.")
                if tuple(part.shape) != right:
                    raise BrokenError(f"{call} gives {name} of shape {list(part.shape)}, not {list(right)}.")
                if part.dtype != features.dtype:
                    raise BrokenError(f"{call} gives {name} as {part.dtype}, not {features.dtype}.")
                if not part.isfinite().all():
                    raise BrokenError(f"{call} gives {name} that are not finite ({setting}).")


def _empty_law(trial: Trial) -> None:
    for setting, features, given in trial.settings():
        nameless = (given != UNLABELED).cumsum(1) - (given != UNLABELED).int() == 0  # before the first name
        novelty = trial.whole(features, given).novelty
        wrong = nameless & (novelty <= 0)
        if wrong.any():
            row, t = (int(i) for i in wrong.nonzero()[0])
            raise BrokenError(
                f"At meeting {t} of sequence {row} ({setting}) no label had been told yet, "
                f"but the novelty is {float(novelty[row, t]):.4g}, which means known."
            )


def _unused_law(trial: Trial) -> None:
    for setting, features, given in trial.settings():
        scores = trial.whole(features, given).scores
        one_hot = F.one_hot(given.clamp_min(0), trial.slots) * (given != UNLABELED)[..., None]
        told = one_hot.cumsum(1) - one_hot > 0  # [B, T, K] before meeting t
        for wrong, what in (
            (~told & (scores > LARGE_NEGATIVE), "no label had opened it yet"),
            (told & (scores <= LARGE_NEGATIVE), "its label had been told before"),
        ):
            if wrong.any():
                row, t, slot = (int(i) for i in wrong.nonzero()[0])
                raise BrokenError(
                    f"At meeting {t} of sequence {row} ({setting}) slot {slot} scores "
                    f"{float(scores[row, t, slot]):.4g}, but {what}."
                )


def _tensors(state: Any) -> dict[str, Tensor]:
    """The tensors of a state; none if it is of another kind, which is for the law about saving to say."""
    try:
        return tensors_of_state(state)
    except WanderError:
        return {}


def _pure_law(trial: Trial) -> None:
    for setting, features, given in trial.settings():
        state = trial.begin(ROWS)
        for t in range(LENGTH):
            inputs = _tensors(state) | {"feature": features[:, t].clone(), "given": given[:, t].clone()}
            before = {name: tensor.clone() for name, tensor in inputs.items()}
            torch.manual_seed(trial.seed)
            answer, after = trial.learner.step(state, inputs["feature"], inputs["given"])
            for name, tensor in inputs.items():
                if not torch.equal(tensor, before[name]):
                    raise BrokenError(f"At meeting {t} ({setting}) `step` changed `{name}` in place.")
            torch.manual_seed(trial.seed)
            again, _ = trial.learner.step(state, inputs["feature"], inputs["given"])
            if words := difference(stack([again]), stack([answer]), meeting=t):
                raise BrokenError(f"The same step taken twice answers differently ({setting}): {words}.")
            state = after


def _agreement_law(trial: Trial) -> None:
    for setting, features, given in trial.settings():
        if words := difference(trial.whole(features, given), trial.stepped(features, given)):
            raise BrokenError(f"Whole sequences and repeated steps disagree ({setting}): {words}.")


def _causal_law(trial: Trial) -> None:
    for setting, features, given in trial.settings():
        answers = trial.whole(features, given)
        for t in (0, LENGTH // 3, LENGTH - 2):
            later, told = features.clone(), given.clone()
            later[:, t + 1 :] = 10 * later[:, t + 1 :].flip(1) + 1
            told[:, t + 1 :] = torch.where(told[:, t + 1 :] == UNLABELED, 0, UNLABELED)
            if words := difference(until(trial.whole(later, told), t + 1), until(answers, t + 1)):
                raise BrokenError(f"Changing only what is met after meeting {t} ({setting}), {words}.")
            told = given.clone()
            told[:, t] = torch.where(told[:, t] == UNLABELED, 0, UNLABELED)
            if words := difference(until(trial.whole(features, told), t + 1), until(answers, t + 1)):
                raise BrokenError(f"Changing only the label told after answer {t} ({setting}), {words}.")


def _slots_law(trial: Trial) -> None:
    random = torch.Generator().manual_seed(trial.seed)
    for setting, features, given in trial.settings():
        order = torch.randperm(trial.slots, generator=random)
        moved = torch.empty_like(order).scatter(0, order, order.roll(1)).to(given.device)  # no slot k stays
        renamed = torch.where(given == UNLABELED, UNLABELED, moved[given.clamp_min(0)])
        scores, novelty = trial.whole(features, renamed)
        if words := difference(Answers(scores[..., moved], novelty), trial.whole(features, given)):
            raise BrokenError(f"With the same names in other slots ({setting}), {words}.")


def _spare_law(trial: Trial) -> None:
    for setting, features, given in trial.settings():
        more = trial.slots + 5
        scores, novelty = trial.whole(features, given, more)
        if words := difference(Answers(scores[..., : trial.slots], novelty), trial.whole(features, given)):
            raise BrokenError(f"With room for {more} classes instead of {trial.slots} ({setting}), {words}.")


def _padding_law(trial: Trial) -> None:
    for setting, features, given in trial.settings():
        padded = torch.cat([features, features[:, -6:-1].flip(1)], 1)  # what is padded with may be anything
        told = F.pad(given, (0, 5), value=UNLABELED)
        if words := difference(until(trial.whole(padded, told), LENGTH), trial.whole(features, given)):
            raise BrokenError(f"With 5 meetings of padding at the end ({setting}), {words}.")


def _batch_law(trial: Trial) -> None:
    for setting, features, given in trial.settings():
        answers = trial.whole(features, given)
        for row in range(ROWS):
            alone = trial.whole(features[row : row + 1], given[row : row + 1])
            together = Answers(answers.scores[row : row + 1], answers.novelty[row : row + 1])
            if words := difference(together, alone, row=row):
                raise BrokenError(f"Together with other sequences instead of alone ({setting}), {words}.")


def _gradients_law(trial: Trial) -> None:
    paths = {"on whole sequences": trial.whole, "stepping": trial.stepped}
    for setting, labelled in SETTINGS.items():
        features, given, target = trial.sequences(labelled)
        same = features[:, :1].expand_as(features)
        kinds = {"ordinary": features, "all-zero": torch.zeros_like(features), "identical": same}
        for (kind, inputs), T, (path, run) in product(kinds.items(), (1, 2, LENGTH), paths.items()):
            leaf = inputs[:, :T].clone().requires_grad_()
            loss = _loss(run(leaf, given[:, :T]), target[:, :T])
            if not loss.requires_grad:
                if T == LENGTH:
                    raise BrokenError(f"The answers carry no gradient at all {path} ({setting}).")
                continue  # what is met first may be new whatever it is
            parts = {"the features": leaf, **_weights(trial.learner)}
            gradients = torch.autograd.grad(loss, list(parts.values()), allow_unused=True)
            for name, gradient in zip(parts, gradients, strict=True):
                if gradient is not None and not gradient.isfinite().all():
                    raise BrokenError(
                        f"After {T} meeting{'s' * (T > 1)} with {kind} features {path} ({setting}), "
                        f"the gradient of {name} is not finite."
                    )


def _weights(learner: Any) -> dict[str, Tensor]:
    if isinstance(learner, nn.Module):
        named: Iterable[tuple[object, nn.Parameter]] = learner.named_parameters()
    else:
        named = enumerate(learner.parameters())
    return {f"parameter `{name}`": weight for name, weight in named if weight.requires_grad}


def _loss(answers: Answers, target: Tensor) -> Tensor:
    """The loss of training: is it new, and if not, which class."""
    known = target != NEW
    binary = F.binary_cross_entropy_with_logits(answers.novelty, (~known).to(answers.novelty))
    return binary + F.cross_entropy(answers.scores[known], target[known], reduction="sum")


def _saving_law(trial: Trial) -> None:
    other = trial.pristine
    if other is None:
        raise BrokenError("The learner cannot be copied with copy.deepcopy.")
    if isinstance(trial.learner, nn.Module) and isinstance(other, nn.Module):
        kept = {name: value.clone().contiguous() for name, value in trial.learner.state_dict().items()}
        saved = save_tensors(kept)
        for value in (dict(other.named_parameters()) | other.state_dict()).values():
            value.copy_(value.logical_not())  # so that only what is really loaded can be right again
        other.load_state_dict(load_tensors(saved))
    for setting, features, given in trial.settings():
        half = LENGTH // 2
        state = trial.begin(ROWS)
        for t in range(half):
            _, state = trial.learner.step(state, features[:, t], given[:, t])
        kept = {name: part.clone().contiguous() for name, part in tensors_of_state(state).items()}
        loaded = state_from_tensors(trial.begin(ROWS), load_tensors(save_tensors(kept)))
        torch.manual_seed(trial.seed)
        answer, _ = trial.learner.step(state, features[:, half], given[:, half])
        torch.manual_seed(trial.seed)
        found, _ = other.step(loaded, features[:, half], given[:, half])
        if words := difference(stack([found]), stack([answer]), meeting=half, tolerance=1e-6):
            raise BrokenError(f"After saving and loading weights and state ({setting}), {words}.")


LAWS: Final = (
    Law(
        "shapes",
        "answers have the right shapes and types",
        "Return Answers(scores, novelty): [B, K] and [B] from `step`, [B, T, K] and [B, T] for whole "
        "sequences, of the features' type; see wanderlearn.learners.answer.",
        _shapes_law,
    ),
    Law(
        "empty",
        "an empty memory says new",
        "Set the novelty to CERTAINLY_NEW while no slot has been opened.",
        _empty_law,
    ),
    Law(
        "unused",
        "slots no label has opened score UNUSED",
        "Mask the scores with the slots told before this meeting (answer first, then write), and only those.",
        _unused_law,
    ),
    Law(
        "pure",
        "`step` does not change its inputs",
        "Build a new state instead of writing into the old one (no `+=`, `x[i] = `, or names ending in _), "
        "and keep nothing on `self`.",
        _pure_law,
    ),
    Law(
        "agreement",
        "whole sequences and repeated steps agree",
        "They must give the same numbers to 1e-4; looping over `step` in `forward` is always right.",
        _agreement_law,
    ),
    Law(
        "causal",
        "answer t depends on nothing after t",
        "Mask out later meetings, answer before reading the given label, and use no statistics over time.",
        _causal_law,
    ),
    Law(
        "slots",
        "permuting class slots permutes the answers",
        "Treat all slots alike: no weights, biases or order that belong to a slot's number.",
        _slots_law,
    ),
    Law(
        "spare",
        "room for more classes changes nothing",
        "Mask out unopened slots before any sum, softmax or mean over slots.",
        _spare_law,
    ),
    Law(
        "padding",
        "padding changes nothing",
        "Padded meetings come last and unlabelled: let nothing depend on the length of the sequence.",
        _padding_law,
    ),
    Law(
        "batch",
        "sequences of a batch do not touch each other",
        "Use no sum, mean, maximum or normalisation over the batch dimension.",
        _batch_law,
    ),
    Law(
        "gradients",
        "gradients are finite from the first step",
        "Look for 0/0, log(0), the square root of 0, or a softmax over nothing: replace the bad value before "
        "the operation, since torch.where afterwards still multiplies its gradient by infinity.",
        _gradients_law,
    ),
    Law(
        "saving",
        "saving and loading changes no next answer",
        "Keep all memory in the state (NamedTuples of tensors), and all weights in parameters and buffers.",
        _saving_law,
    ),
)
