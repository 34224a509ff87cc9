"""The metrics once more, slowly and plainly: loops, lists and dictionaries, one step at a time.

Written from the definitions, sharing no code with `wanderlearn.metrics`. A sequence is a list of `Step`.
"""

import math
from typing import NamedTuple

NEW = -2
UNLABELED = -1


class Step(NamedTuple):
    novelty: float
    predicted: int
    confidence: float
    target: int
    truth: int
    given: int
    time: int


Sequences = list[list[Step]]


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def area(doubts: list[float], hits: list[bool], known: int) -> float:
    """Go through the distinct doubts from low to high; add one trapezoid for each."""
    if known == 0:
        return math.nan
    total, recall_before, precision_before = 0.0, 0.0, 1.0
    for doubt in sorted(set(doubts)):
        met = sum(1 for other in doubts if other <= doubt)
        right = sum(1 for other, hit in zip(doubts, hits, strict=True) if other <= doubt and hit)
        recall, precision = right / known, right / met
        total += (recall - recall_before) * (precision + precision_before) / 2
        recall_before, precision_before = recall, precision
    return total


def average_precision(sequences: Sequences) -> float:
    steps = [step for sequence in sequences for step in sequence]
    hits = [step.target != NEW and step.predicted == step.target for step in steps]
    return area([step.novelty for step in steps], hits, sum(step.target != NEW for step in steps))


def average_precision_joint(sequences: Sequences) -> float:
    steps = [step for sequence in sequences for step in sequence]
    hits = [step.target != NEW and step.predicted == step.target for step in steps]
    products = [math.exp(step.confidence) / (1 + math.exp(step.novelty)) for step in steps]
    return area([-product for product in products], hits, sum(step.target != NEW for step in steps))


def shots(sequences: Sequences, shot: int, labelled_only: bool) -> tuple[float, float, float, int, int]:
    """Pooled mean, mean of sequence means, standard error, queries, sequences."""
    pooled: list[float] = []
    means: list[float] = []
    for sequence in sequences:
        count: dict[int, int] = {}
        answers: list[float] = []
        for step in sequence:
            if step.target != NEW and count.get(step.truth, 0) == shot:
                answers.append(1.0 if step.predicted == step.target else 0.0)
            if step.given != UNLABELED or not labelled_only:
                count[step.truth] = count.get(step.truth, 0) + 1
        pooled += answers
        if answers:
            means.append(mean(answers))
    centre = mean(means)
    variance = mean([(value - centre) ** 2 for value in means])
    error = math.sqrt(variance / len(means)) if means else math.nan
    return mean(pooled), centre, error, len(pooled), len(means)


def over_time(sequences: Sequences, time: int, known_only: bool) -> float:
    answers: list[float] = []
    for sequence in sequences:
        for step in sequence:
            if step.time != time:
                continue
            if known_only and step.target != NEW:
                answers.append(float(step.predicted == step.target))
            if not known_only:
                said = NEW if step.novelty > 0 else step.predicted
                answers.append(float(said == step.target))
    return mean(answers)


def forgetting(
    sequences: Sequences, first: int, last: int, shot: int, since_label: bool
) -> tuple[float, int]:
    answers: list[float] = []
    for sequence in sequences:
        seen: dict[int, int] = {}
        labels: dict[int, int] = {}
        for step in sequence:
            if step.target != NEW and labels.get(step.truth, 0) == shot and step.truth in seen:
                interval = step.time - seen[step.truth]
                if first <= interval <= last:
                    answers.append(float(step.predicted == step.target))
            if step.given != UNLABELED:
                labels[step.truth] = labels.get(step.truth, 0) + 1
            if step.given != UNLABELED or not since_label:
                seen[step.truth] = step.time
    return mean(answers), len(answers)


def known_accuracy(sequences: Sequences) -> float:
    steps = [step for sequence in sequences for step in sequence if step.target != NEW]
    return mean([float(step.predicted == step.target) for step in steps])


def novelty_accuracy(sequences: Sequences) -> float:
    steps = [step for sequence in sequences for step in sequence]
    return mean([float((step.novelty > 0) == (step.target == NEW)) for step in steps])
