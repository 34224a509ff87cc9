"""A trained model as ONNX files that need neither Python nor torch: see docs/export.md."""

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wanderlearn._version import __version__
from wanderlearn.configs import kind_of, to_json
from wanderlearn.errors import WanderError
from wanderlearn.export.graphs import OPSETS, begin_graph, step_graph
from wanderlearn.export.parity import MEETINGS, TOLERANCE, Runner, largest_difference, random_life
from wanderlearn.files import writing
from wanderlearn.learners.offline import OfflineLR
from wanderlearn.learners.vectors import VectorsConfig
from wanderlearn.model import Model
from wanderlearn.worlds.sequence import UNLABELED

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["Exported", "begin_path", "export_model"]

SLOTS: Final = 50  # where the learner does not say
SEED: Final = 0
ROWS: Final = (1, 3)  # a life alone, and several at once


@dataclass(frozen=True)
class Exported:
    """What was written, and how well it agrees with the learner."""

    step: Path
    begin: Path
    opset: int
    slots: int
    largest_difference: float
    """Of all answers in the lives both lived through, relative above 1 and absolute below."""
    meetings: int
    inputs: dict[str, str]
    """Of the step: the name of every tensor, its type and sizes."""
    outputs: dict[str, str]


def begin_path(out: Path) -> Path:
    """Where the graph of the first state goes: `robot.begin.onnx` beside `robot.onnx`."""
    return out.with_suffix(".begin.onnx")


def export_model(
    model: Model,
    out: Path | str,
    *,
    slots: int | None = None,
    opset: int = OPSETS[0],
    about: Mapping[str, str] | None = None,
) -> Exported:
    """Write a model as two ONNX files, after both lived through random meetings beside the learner.

    `slots` is how many classes there is room for (None: what the learner was built for, or 50). `about` is
    written into the files' metadata. Nothing is left behind if the answers differ by more than 1e-4.
    """
    out = Path(out)
    _check(model, out, opset)
    slots = getattr(model.config.learner, "slots", SLOTS) if slots is None else slots
    if slots < 1:
        raise WanderError(f"--slots must be at least 1, not {slots}.")
    import onnx

    model = model.eval()
    with writing(begin_path(out)) as begin_part, writing(out) as step_part:
        graphs = {"step": step_graph(model, slots, opset), "begin": begin_graph(model, slots, opset)}
        for name, part in (("step", step_part), ("begin", begin_part)):
            _describe(graphs[name], name, model, slots, about or {})
            onnx.checker.check_model(graphs[name], full_check=True)
            part.write_bytes(graphs[name].SerializeToString(deterministic=True))
        runner = _runner(step_part, begin_part, opset)
        lives = {rows: random_life(model, slots, rows, SEED) for rows in ROWS}
        worst = largest_difference(model, runner, slots, lives)
        if not worst <= TOLERANCE:
            raise WanderError(
                f"The exported graph does not say what the learner says: in {MEETINGS} random meetings the "
                f"answers differ by up to {worst:.2g}, more than {TOLERANCE:g}. Nothing was written. "
                "Try another --opset or another version of onnxruntime."
            )
    step = graphs["step"].graph
    inputs = {value.name: _shape(value) for value in step.input}
    outputs = {value.name: _shape(value) for value in step.output}
    return Exported(out, begin_path(out), opset, slots, worst, MEETINGS * len(ROWS), inputs, outputs)


def _check(model: Model, out: Path, opset: int) -> None:
    for name in ("onnx", "onnxscript", "onnxruntime"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise WanderError(
                f"Exporting needs {name}, which is not installed. "
                "Install the extra, `pip install 'wanderlearn[onnx]'`."
            ) from error
    if out.suffix != ".onnx":
        raise WanderError(f"The graph goes into a file that ends in .onnx, not {out.name}.")
    for path in (out, begin_path(out)):
        if path.is_dir():
            raise WanderError(f"{path} is a folder. Name a file.")
    if opset not in OPSETS:
        raise WanderError(f"--opset must be between {OPSETS[0]} and {OPSETS[-1]}, not {opset}.")
    if isinstance(model.learner, OfflineLR):
        raise WanderError(
            "Offline logistic regression cannot be exported: it fits anew at every meeting until it "
            "converges, which is no fixed graph. Export the learner whose features it judged."
        )


def _runner(step: Path, begin: Path, opset: int) -> Runner:
    try:
        return Runner(step.read_bytes(), begin.read_bytes())
    except Exception as error:  # onnxruntime has exceptions of its own, of no common kind
        raise WanderError(
            f"onnxruntime cannot run the graph in opset {opset} ({error}). Nothing was written. "
            f"Try --opset {OPSETS[0]}, or another version of onnxruntime."
        ) from error


def _describe(graph: "ModelProto", name: str, model: Model, slots: int, about: Mapping[str, str]) -> None:
    """Say in the file what it is and how it is used."""
    from onnx import helper

    encoder = model.config.encoder
    graph.producer_name, graph.producer_version = "wanderlearn", __version__
    graph.graph.name = name
    props: dict[str, Any] = {
        "graph": name,
        "learner": kind_of(type(model.config.learner)),
        "config": json.dumps(to_json(model.config), sort_keys=True),
        "slots": slots,
        "unlabeled": UNLABELED,
        "preprocessing": _preprocessing(encoder),
        "answer": "novelty above 0: new; else the class is the slot of the largest score",
        "wanderlearn_version": __version__,
    }
    props |= {key: value for key, value in about.items() if key not in props}
    helper.set_model_props(graph, {key: str(value) for key, value in sorted(props.items())})


def _preprocessing(encoder: Any) -> str:
    shape = f"float32 [batch, {encoder.in_channels}, {encoder.image_size}, {encoder.image_size}]"
    if isinstance(encoder, VectorsConfig):
        return f"image: {shape}, the numbers of a feature vector as they are"
    polarity = "; bright strokes on black" if encoder.in_channels == 1 else ""
    return f"image: {shape}, pixel / 127.5 - 1 of 8 bits, so -1 is black and 1 is white{polarity}"


def _shape(value: Any) -> str:
    from onnx import TensorProto

    tensor = value.type.tensor_type
    sizes = ", ".join(each.dim_param or str(each.dim_value) for each in tensor.shape.dim)
    return f"{TensorProto.DataType.Name(tensor.elem_type).lower()} [{sizes}]"
