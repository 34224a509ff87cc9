"""Lives without the benchmark's limits: what a shipped learner was told often, it still knows."""

from pathlib import Path

import pytest

import wanderlearn
from wanderlearn.files import digest_of
from wanderlearn.pictures.glyphs import draw_alphabet
from wanderlearn.results import read_result
from wanderlearn.shipped import find_weights

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


def test_the_page_is_of_the_shipped_weights() -> None:
    found = read_result(Path(__file__).parents[1] / "results" / "long-life.json", "long-life")
    for row in found["rows"]:
        shipped = digest_of(find_weights(f"{row['learner']}-omniglot"))
        assert row["weights_sha256"] == shipped, "run `python benchmarks/long_life.py`"
