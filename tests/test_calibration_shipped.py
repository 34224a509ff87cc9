"""The calibrations in the package are those of its weights, and the page shows what was measured."""

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from wanderlearn import WanderError, load
from wanderlearn.calibration import DELTA, SHIPPED, Calibration
from wanderlearn.files import digest_of
from wanderlearn.results import read_result, write_result
from wanderlearn.shipped import shipped_weights

ROOT = Path(__file__).parent.parent
AGAIN = "run `python benchmarks/calibrate.py`"


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("calibrate_script", ROOT / "benchmarks" / "calibrate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(shipped_weights()))
def test_every_shipped_learner_has_its_calibration(name: str) -> None:
    assert (SHIPPED / f"{name}.json").exists(), AGAIN
    found = Calibration.load_for(name)  # refuses one of other weights
    assert found is not None
    assert found.about["split"] == "val"  # never test
    assert found.delta == DELTA
    assert found.threshold(0.05) is not None
    agent = load(name)
    assert agent.calibration == found


def test_no_calibration_is_left_over() -> None:
    assert {path.stem for path in SHIPPED.glob("*.json")} == shipped_weights().keys(), AGAIN


def test_results_are_of_the_shipped_weights(script: ModuleType) -> None:
    learners = read_result(script.RESULT, script.KIND)["learners"]
    assert {name: found["weights_sha256"] for name, found in learners.items()} == {
        name: digest_of(path) for name, path in shipped_weights().items()
    }, AGAIN
    for name, found in learners.items():
        kept = Calibration.load_for(name)
        assert kept is not None
        for cell in found["fitted"]:
            assert cell["threshold"] == kept.threshold(cell["promised"])
        for stream in found["streams"].values():
            assert [cell["promised"] for cell in stream["accepting"]] == list(script.ERRORS)


def test_the_page_shows_the_results(script: ModuleType, tmp_path: Path) -> None:
    page = Path(shutil.copy(script.PAGE, tmp_path))
    assert not script.tables(script.RESULT, page), "run `python benchmarks/calibrate.py --tables`"
    assert "Accept or ask" in page.read_text()


def test_only_what_changed_is_measured_again(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = sorted(shipped_weights())
    learners = read_result(script.RESULT, script.KIND)["learners"]
    learners[names[0]] = learners[names[0]] | {"weights_sha256": "another"}
    kept = tmp_path / "calibration"
    shutil.copytree(SHIPPED, kept)
    (kept / "gone.json").write_text("{}")
    result = tmp_path / "calibration.json"
    write_result(result, {"kind": script.KIND, "learners": learners | {"gone": {}}})
    monkeypatch.setattr(script, "RESULT", result)
    monkeypatch.setattr(script, "SHIPPED", kept)
    measured: list[str] = []

    def measure(name: str) -> dict[str, Any]:
        measured.append(name)
        digest = digest_of(shipped_weights()[name])
        return {"weights_sha256": digest, "fitted_on": {"sequences": script.FITTED}}

    monkeypatch.setattr(script, "measure", measure)
    script.run([])
    assert measured == names[:1]
    script.run([])
    assert measured == names[:1]  # nothing is left to do
    script.run(names[1:2])
    assert measured == names[:2]  # but one may be asked for
    assert set(read_result(result, script.KIND)["learners"]) == set(names)
    assert not (kept / "gone.json").exists()
    with pytest.raises(WanderError, match="No such weights are shipped: nobody"):
        script.run(["nobody"])


def test_an_agent_that_is_never_corrected_is_measured_too(script: ModuleType) -> None:
    learners = read_result(script.RESULT, script.KIND)["learners"]
    for found in learners.values():
        assert set(found["streams"]) == set(script.STREAMS)
