"""A model's two graphs: `step`, one meeting with explicit state, and `begin`, the state before the first.

The learner's own `step` is traced, so its mathematics stands nowhere twice. What is different here is what a
graph needs: the encoder is folded, the state comes and goes as named tensors, and memories that grow start
with one blank column, because many runtimes cannot take the least of nothing.
"""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from wanderlearn.configs import kind_of
from wanderlearn.errors import WanderError
from wanderlearn.learners.imp import Clusters
from wanderlearn.learners.matchingnet import Examples
from wanderlearn.learners.state import state_from_tensors, tensors_of_state
from wanderlearn.model import Model
from wanderlearn.worlds.sequence import UNLABELED

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["OPSETS", "begin_graph", "begin_state", "next_name", "step_graph"]

OPSETS: Final = range(18, 24)
"""The versions of ONNX's operators that can be asked for."""
ROWS, COLUMNS = 2, 3  # of what is traced: neither 0 nor 1, which tracing would take for something special
NOISY: Final = (
    "torch.onnx",
    "torch.__trace",
    "onnxscript",
    "onnx_ir",
)  # they log what a user can do nothing about
BATCH, KEPT, KEPT_NEXT = "batch", "kept", "kept_next"  # names of sizes that are free


class _Step(nn.Module):
    """One meeting, from and to flat tensors."""

    def __init__(self, model: Model, like: object) -> None:
        super().__init__()
        # Without the blocks as modules: only the folded weights become part of the graph.
        freeze = getattr(model.encoder, "frozen", None)
        self.encode: Any = model.encoder if freeze is None else freeze(traced=True)
        self.learner: Any = model.learner
        self._like, self._names = (like,), tuple(tensors_of_state(like))

    def forward(
        self, image: Float[Tensor, "B C H W"], given: Int[Tensor, " B"], *state: Tensor
    ) -> tuple[Tensor, ...]:
        before = state_from_tensors(self._like[0], dict(zip(self._names, state, strict=True)))
        answer, after = self.learner.step(before, self.encode(image), given)
        return answer.scores, answer.novelty, *tensors_of_state(_trimmed(before, after)).values()


def begin_state(model: Model, rows: int, slots: int) -> object:
    """The learner's empty state; a memory that grows has one blank column, which it never looks at."""
    return _padded(cast(Any, model.learner).begin(rows, slots), 1)


def next_name(name: str) -> str:
    """What a tensor of the state is called where it comes out: `next.memory.counts`."""
    return name.replace("state", "next", 1)


def step_graph(model: Model, slots: int, opset: int) -> "ModelProto":
    """(image, given, state) -> (scores, novelty, next state), for any number of rows."""
    learner: Any = model.learner
    like = learner.begin(ROWS, slots)
    # Clones, because tracing takes one tensor under two names (an LSTM's first state) for one input.
    state = {name: tensor.clone() for name, tensor in tensors_of_state(_padded(like, COLUMNS)).items()}
    batch, kept = torch.export.Dim(BATCH), torch.export.Dim(KEPT)
    grows = {name for name, tensor in tensors_of_state(like).items() if tensor.shape != state[name].shape}
    free = tuple({0: batch} | ({1: kept} if name in grows else {}) for name in state)
    encoder = model.config.encoder
    image = torch.zeros(ROWS, encoder.in_channels, encoder.image_size, encoder.image_size)
    given = torch.full((ROWS,), UNLABELED)
    try:
        with torch.no_grad(), _quiet():
            traced = torch.export.export(
                _Step(model, like).eval(),
                (image, given, *state.values()),
                dynamic_shapes=({0: batch}, {0: batch}, free),
                strict=False,
            )
            program = torch.onnx.export(
                traced,
                input_names=["image", "given", *state],
                output_names=["scores", "novelty", *map(next_name, state)],
                opset_version=opset,
                dynamo=True,
                verbose=False,
            )
    except Exception as error:  # torch names dozens of reasons, each by an exception of its own
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise WanderError(
            f"The learner {kind_of(type(model.config.learner))} cannot be exported: its step does something "
            f"that a graph cannot hold ({reason})."
        ) from error
    assert program is not None  # it is None only where it was written to a file
    graph = program.model_proto
    _name_sizes(graph, grows)
    return _tidied(graph, opset)


def begin_graph(model: Model, slots: int, opset: int) -> "ModelProto":
    """batch -> the state of as many rows before their first meeting."""
    from onnx import TensorProto, helper, numpy_helper

    nodes, values, outputs = [], [], []
    for name, tensor in tensors_of_state(begin_state(model, 1, slots)).items():
        row = tensor[0].detach().numpy()
        kind = helper.np_dtype_to_tensor_dtype(row.dtype)
        one = row.reshape(-1)[:1] if (row == row.reshape(-1)[:1]).all() else row  # one number for all, if so
        values += [
            numpy_helper.from_array(one, f"{name}.row"),
            numpy_helper.from_array(torch.tensor(row.shape, dtype=torch.int64).numpy(), f"{name}.shape"),
        ]
        nodes += [
            helper.make_node("Concat", [BATCH, f"{name}.shape"], [f"{name}.size"], axis=0),
            helper.make_node("Expand", [f"{name}.row", f"{name}.size"], [name]),
        ]
        outputs.append(helper.make_tensor_value_info(name, kind, [BATCH, *row.shape]))
    inputs = [helper.make_tensor_value_info(BATCH, TensorProto.INT64, [1])]
    graph = helper.make_graph(nodes, "begin", inputs, outputs, values)
    return _tidied(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), opset)


def _padded(state: object, columns: int) -> object:
    """A state whose memory grows, with blank columns; any other as it is."""

    def blank(tensor: Tensor) -> Tensor:
        fill = UNLABELED if tensor.dtype == torch.int64 else 0
        return tensor.new_full((tensor.shape[0], columns, *tensor.shape[2:]), fill)

    if isinstance(state, Examples):
        return state._replace(features=blank(state.features), labels=blank(state.labels))
    if isinstance(state, Clusters):
        return state._replace(mean=blank(state.mean), items=blank(state.items), label=blank(state.label))
    return state


def _trimmed(before: object, after: object) -> object:
    """The state after a traced step, which always adds a column, without it if it was left blank."""
    if isinstance(after, Examples) and isinstance(before, Examples):
        width = _width(before.labels, after.labels[:, -1] != UNLABELED)
        return after._replace(features=after.features[:, :width], labels=after.labels[:, :width])
    if isinstance(after, Clusters) and isinstance(before, Clusters):
        width = _width(before.items, after.items[:, -1] > 0)
        return after._replace(
            mean=after.mean[:, :width], items=after.items[:, :width], label=after.label[:, :width]
        )
    return after


def _width(before: Tensor, filled: Bool[Tensor, " B"]) -> int:
    """How many columns there are now: one more, if any row has filled it. In tracing, a symbol."""
    return before.shape[1] + cast(int, filled.any().long().item())


def _name_sizes(graph: "ModelProto", grows: set[str]) -> None:
    """Call the free sizes by their names; tracing has numbered them."""
    for value in graph.graph.input:
        dimensions = value.type.tensor_type.shape.dim
        dimensions[0].dim_param = BATCH
        if value.name in grows:
            dimensions[1].dim_param = KEPT
    after = {next_name(name) for name in grows}
    for value in graph.graph.output:
        dimensions = value.type.tensor_type.shape.dim
        dimensions[0].dim_param = BATCH
        if value.name in after:
            dimensions[1].dim_param = KEPT_NEXT
    del graph.graph.value_info[:]  # the sizes in between: every runtime finds them itself


def _tidied(graph: "ModelProto", opset: int) -> "ModelProto":
    """Without what is of the machine it was made on, and readable by the oldest runtime that can run it."""
    from onnx import helper

    found = {each.domain: each.version for each in graph.opset_import}
    if found != {"": opset}:
        raise WanderError(
            f"The graph cannot be written in opset {opset}: it needs {found}. Try another --opset."
        )
    for node in graph.graph.node:
        del node.metadata_props[:]  # where in the source, with paths
        node.doc_string = ""
    for value in (*graph.graph.input, *graph.graph.output, *graph.graph.initializer):
        del value.metadata_props[:]
        value.doc_string = ""
    del graph.graph.metadata_props[:]
    graph.graph.doc_string = graph.doc_string = ""
    graph.ir_version = helper.find_min_ir_version_for(graph.opset_import)
    return graph


@contextmanager
def _quiet(names: Sequence[str] = NOISY) -> Iterator[None]:
    """Without warnings and notes of the exporter."""
    levels = {name: logging.getLogger(name).level for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            logging.getLogger(name).setLevel(logging.ERROR)
        try:
            yield
        finally:
            for name, level in levels.items():
                logging.getLogger(name).setLevel(level)
