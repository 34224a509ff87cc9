"""An encoder of the user's: every picture goes through it once, then all works on vectors."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tests.folder.test_places_cli import SHORT, SMALL, fails
from tests.folder.trees import three_splits
from wanderlearn.cli import main
from wanderlearn.errors import WanderError
from wanderlearn.learners.vectors import VectorsConfig
from wanderlearn.model import about_model, load_model
from wanderlearn.pictures.encoded import encoded, load_encoder
from wanderlearn.worlds import Roaming, RoamingConfig, open_pictures

MINE = """
import numpy as np
import torch
from torch import nn

calls = []

def encode(pictures):
    calls.append(len(pictures))
    assert pictures.dtype == torch.float32 and pictures.min() >= -1 and pictures.max() <= 1
    return pictures.mean((2, 3))

def as_numpy(pictures):
    return pictures.flatten(1).numpy()[:, :5]

network = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.BatchNorm1d(192))

class Network(nn.Module):
    def forward(self, pictures):
        return pictures.amax((2, 3))

def make():
    return Network()

def flat(pictures):
    return pictures.flatten()

def maps(pictures):
    return pictures

def nothing(pictures):
    return pictures.mean((2, 3)) / 0 - pictures.mean((2, 3)) / 0

def whole(pictures):
    return pictures.mean((2, 3)).long()

def words(pictures):
    return "a feature"

def restless(pictures):
    return torch.rand(len(pictures), 3)

def together(pictures):
    means = pictures.mean((2, 3))
    return means - means.mean(0)

def growing(pictures):
    return torch.ones(len(pictures), 3 if len(pictures) < 30 else 4)

def breaks(pictures):
    raise ValueError("not today")

number = 3
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WANDERLEARN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    three_splits(tmp_path / "mine", families=3, classes=3, pictures=4)
    return tmp_path


def test_train_and_evaluate_on_what_an_encoder_gave(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = ["train", "protonet", "--world", "folder:mine?size=8", "--encoder", "mine.py:encode"]
    main([*train, *SMALL, *SHORT])
    said = capsys.readouterr().err
    assert "108 vectors of 3 numbers" in said
    weights = Path("runs/protonet-mine/best/model.safetensors")
    assert load_model(weights).config.encoder == VectorsConfig(width=3)
    kept = about_model(weights)["world"]
    assert kept.startswith(f"features:{place}/cache/encoded/folder-mine-encode-")
    main(["evaluate", "runs/protonet-mine", "--sequences", "3", "--json", "-"])  # without the encoder
    first = json.loads(capsys.readouterr().out)
    again = ["--world", "folder:mine?size=8", "--encoder", "mine.py:encode"]
    main(["evaluate", "runs/protonet-mine", "--sequences", "3", "--json", "-", *again])
    assert json.loads(capsys.readouterr().out)["metrics"] == first["metrics"]
    main([*train, *SMALL, *SHORT, "--name", "unit", "--model.encoder.unit"])
    assert load_model("runs/unit/best/model.safetensors").config.encoder == VectorsConfig(width=3, unit=True)
    assert "vectors of" not in capsys.readouterr().err  # they were kept


def test_vectors_stand_for_the_same_meetings_as_the_pictures(place: Path) -> None:
    address = "folder:mine?size=8"
    pictures = [open_pictures(address, split) for split in ("train", "val", "test")]
    encoder = load_encoder("mine.py:encode")
    vectors = str(encoded(pictures, encoder))
    process = RoamingConfig(environments=3, classes=9, length=30, per_class=4, crop="none", occlusion=0.0)
    for some in pictures:
        other = open_pictures(vectors, some.split)
        assert list(other.class_names) == list(some.class_names)
        assert list(other.family_names) == list(some.family_names)
        expected = (some.images / np.float32(127.5) - 1).mean((2, 3))
        np.testing.assert_allclose(other.images[:, :, 0, 0], expected, atol=1e-5)
        shown, same = Roaming(some, process).meetings(0, 1), Roaming(other, process).meetings(0, 1)
        assert (shown.picture == same.picture).all()
        assert (shown.target == same.target).all()


def test_other_weights_under_the_same_name_are_other_vectors(place: Path) -> None:
    pictures = [open_pictures("folder:mine?size=8", "train")]
    first = encoded(pictures, load_encoder("mine.py:encode"))
    assert encoded(pictures, load_encoder("mine.py:encode")) == first
    Path("mine.py").write_text(
        MINE.replace("return pictures.mean((2, 3))", "return -pictures.mean((2, 3))", 1)
    )
    assert encoded(pictures, load_encoder("mine.py:encode")) != first


def test_every_form_of_an_encoder(place: Path) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (4, 3, 8, 8), dtype=np.uint8)
    shown = torch.from_numpy(pictures).float() / 127.5 - 1
    assert np.allclose(load_encoder("mine.py:as_numpy")(pictures), shown.flatten(1)[:, :5])
    for name in ("Network", "make"):
        assert np.allclose(load_encoder(f"mine.py:{name}")(pictures), shown.amax((2, 3)))
    network = load_encoder("mine.py:network")  # put into evaluation mode
    assert isinstance(network.encode, nn.Module)
    assert not network.encode.training
    assert (network(pictures) == network(pictures)).all()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("flat", "one vector each is needed"),
        ("maps", "[24, 3, 8, 8]"),
        ("nothing", "not finite"),
        ("whole", "int64"),
        ("words", "a str"),
        ("restless", "each time"),
        ("together", "when others come with it"),
        ("growing", "one length"),
        ("breaks", "not today"),
        ("number", "int"),
        ("encoed", "Did you mean encode?"),
    ],
)
def test_what_is_wrong_with_an_encoder_is_said(
    name: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--world", "folder:mine?size=8", "--encoder", f"mine.py:{name}"]
    fails("train", "protonet", *words, *SMALL, *SHORT, says=says, capsys=capsys)
    assert not list(Path("cache/encoded").glob("*")) if Path("cache/encoded").exists() else True


def test_encoders_that_are_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    world = ["--world", "folder:mine?size=8"]
    fails("train", "cpm", *world, "--encoder", "other.py:encode", says="no file other.py", capsys=capsys)
    fails("train", "cpm", *world, "--encoder", "nowhere.at:all", says="no module nowhere", capsys=capsys)
    fails("train", "cpm", *world, *SMALL, "--encoder", "nowhere", says="no run folder", capsys=capsys)
    main(["train", "protonet", *world, *SMALL, *SHORT, "--model.encoder.channels", "4"])
    words = ["evaluate", "runs/protonet-mine", "--encoder", "mine.py:encode"]
    fails(*words, says="--encoder needs --world", capsys=capsys)
    fails(*words, *world, says="an encoder of its own", capsys=capsys)
    encoder = load_encoder("mine.py:encode")
    vectors = encoded([open_pictures("folder:mine?size=8", "train")], encoder)
    again = [open_pictures(str(vectors), "train")]
    with pytest.raises(WanderError, match="vectors already"):
        encoded(again, encoder)


def test_the_example_of_the_docs_runs(place: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "folder.md").read_text(encoding="utf-8")
    example = page.partition("## Your own encoder")[2].partition("```python\n")[2].partition("```")[0]
    Path("mine.py").write_text(example)
    place_, name = "folder:mine?size=64", "mine.py:encode"
    main(["train", "cpm", "--world", place_, "--encoder", name, *SMALL, *SHORT, "--model.learner.units", "8"])
    assert load_model("runs/cpm-mine/best/model.safetensors").config.encoder == VectorsConfig(width=48)
