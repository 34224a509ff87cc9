"""Lives without the benchmark's limits: what a shipped learner was told often, it still knows."""

import pytest

import wanderlearn
from wanderlearn.pictures.glyphs import draw_alphabet

OFTEN = 16  # of twenty hands; a class of the benchmark is met six times at most


@pytest.mark.parametrize("name", ["protonet-omniglot", "cpm-omniglot", "wayfarer-omniglot"])
def test_what_was_told_often_is_known(name: str) -> None:
    characters = dict(zip("ABCDE", draw_alphabet(1001, 5), strict=True))
    agent = wanderlearn.load(name)
    for hand in range(OFTEN):
        for label, drawings in characters.items():
            agent.tell(agent.look(drawings[hand]), label)
    answers = [
        (label, agent.look(drawing)) for label, drawings in characters.items() for drawing in drawings[OFTEN:]
    ]
    assert sum(answer.label == label for label, answer in answers) >= 0.8 * len(answers)
