"""A home as flat arrays: what the compiled loops draw from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from wanderlearn.rooms.patterns import SIZE
from wanderlearn.rooms.shapes import Floats, Part, Texture

__all__ = ["GAMMA", "Chunk", "Scene", "Tree", "build_scene", "build_tree"]

GAMMA: Final = 2.2
Array = npt.NDArray[Any]


class Chunk(NamedTuple):
    """Parts with one id, seen from these rooms; drawn or left out as a whole."""

    id: int
    rooms: tuple[int, ...]
    parts: Sequence[Part]


@dataclass(frozen=True)
class Scene:
    """All triangles of a home."""

    vertices: Array  # [v, 3] float32
    normals: Array  # [v, 3] float32
    uv: Array  # [v, 2] float32
    glow: Array  # [v] float32
    room: Array  # [v] int32: one of the rooms the vertex belongs to
    faces: Array  # [f, 3] int32
    face_normals: Array  # [f, 3] float32
    colours: Array  # [f, 3] float32, linear
    textures: Array  # [f] int32, -1 for none
    density: Array  # [f] float32: texels per metre
    ids: Array  # [f] int32
    solid: Array  # [f] bool: hidden when it faces away
    chunks: Array  # [c, 4] int32: vertices from, to, faces from, to
    spheres: Array  # [c, 4] float32
    sees: Array  # [c, rooms] bool
    texels: Array  # [n, 3] uint8: all textures at all levels
    levels: Array  # [levels] int64: where each level begins


class Tree(NamedTuple):
    """Boxes over triangles, for rays: a complete binary tree, four triangles to a leaf."""

    low: Array
    high: Array
    triangles: Array
    faces: Array  # which face of the scene a triangle is


def build_scene(chunks: Sequence[Chunk], rooms: int) -> Scene:
    """The chunks as one scene."""
    parts = [part for chunk in chunks for part in chunk.parts]
    sizes = np.array([[len(p.vertices), len(p.faces)] for p in parts])
    starts = np.concatenate([[[0, 0]], np.cumsum(sizes, 0)])
    vertices = np.concatenate([p.vertices for p in parts])
    faces = np.concatenate([p.faces + s for p, s in zip(parts, starts[:-1, 0], strict=True)])
    uv = np.concatenate([p.uv for p in parts])
    numbers, atlas = _collect(parts)
    counts = np.cumsum([0] + [len(c.parts) for c in chunks])
    ends = np.stack([starts[counts[:-1]], starts[counts[1:]]], -1).reshape(-1, 4)  # from, to of both
    spheres, sees = np.zeros((len(chunks), 4)), np.zeros((len(chunks), rooms), bool)
    for n, (chunk, (start, end)) in enumerate(zip(chunks, ends[:, :2], strict=True)):
        own = vertices[start:end]
        middle = (own.min(0) + own.max(0)) / 2
        spheres[n] = *middle, np.linalg.norm(own - middle, axis=1).max() + 1e-4
        sees[n, list(chunk.rooms)] = True
    faces_of = np.repeat(np.arange(len(parts)), sizes[:, 1])
    vertices_of = np.repeat(np.arange(len(parts)), sizes[:, 0])
    chunk_of = np.repeat(np.arange(len(chunks)), np.diff(counts))
    colours = np.array([p.paint.colour for p in parts]).clip(0, 1) ** GAMMA
    corners = vertices[faces]
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(cross, axis=1)
    texels, levels = _levels(atlas)
    return Scene(
        vertices=vertices.astype(np.float32),
        normals=np.concatenate([p.normals for p in parts]).astype(np.float32),
        uv=uv.astype(np.float32),
        glow=np.array([p.glow for p in parts], np.float32)[vertices_of],
        room=np.array([c.rooms[0] for c in chunks], np.int32)[chunk_of][vertices_of],
        faces=faces.astype(np.int32),
        face_normals=(cross / (area[:, None] + 1e-12)).astype(np.float32),
        colours=colours[faces_of].astype(np.float32),
        textures=np.array(numbers, np.int32)[faces_of],
        density=_density(uv[faces], area, faces_of, len(parts)).astype(np.float32),
        ids=np.array([c.id for c in chunks], np.int32)[chunk_of][faces_of],
        solid=np.array([p.solid for p in parts])[faces_of],
        chunks=ends.astype(np.int32),
        spheres=spheres.astype(np.float32),
        sees=sees,
        texels=texels,
        levels=levels,
    )


def build_tree(scene: Scene, faces: Array) -> Tree:
    """A tree over these faces of the scene, in the order of a curve that fills space."""
    corners = scene.vertices[scene.faces[faces]].astype(np.float64)
    middle = corners.mean(1)
    span = np.ptp(middle, axis=0).max() + 1e-9
    cell = ((middle - middle.min(0)) / span * 1023).astype(np.uint64)
    order = np.argsort(
        _spread(cell[:, 0]) | _spread(cell[:, 1]) << np.uint64(1) | _spread(cell[:, 2]) << np.uint64(2),
        kind="stable",
    )
    leaves = 1 << int(np.ceil(np.log2(max(1, len(order) / 4))))
    order = np.concatenate([order, np.full(4 * leaves - len(order), order[-1])])
    triangles = corners[order]
    low = triangles.min(1).reshape(leaves, 4, 3).min(1)
    high = triangles.max(1).reshape(leaves, 4, 3).max(1)
    lows, highs = [low], [high]
    while len(low) > 1:
        low, high = low.reshape(-1, 2, 3).min(1), high.reshape(-1, 2, 3).max(1)
        lows.insert(0, low)
        highs.insert(0, high)
    return Tree(np.concatenate(lows), np.concatenate(highs), triangles, np.asarray(faces)[order])


def _spread(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Ten bits with two empty ones between them."""
    for shift, mask in ((16, 0x030000FF), (8, 0x0300F00F), (4, 0x030C30C3), (2, 0x09249249)):
        x = (x | x << np.uint64(shift)) & np.uint64(mask)
    return x


def _collect(parts: Sequence[Part]) -> tuple[list[int], list[Texture]]:
    numbers: dict[int, int] = {}
    atlas: list[Texture] = []
    out = []
    for part in parts:
        texture = part.paint.texture
        if texture is None:
            out.append(-1)
            continue
        if id(texture) not in numbers:
            numbers[id(texture)] = len(atlas)
            atlas.append(texture)
        out.append(numbers[id(texture)])
    return out, atlas


def _levels(atlas: list[Texture]) -> tuple[Array, Array]:
    """Every texture at every size down to 4, each level in one piece."""
    level = (np.stack(atlas) if atlas else np.zeros((1, SIZE, SIZE, 3), np.uint8)).astype(np.float32) / 255
    level = level**GAMMA
    pieces, starts, start = [], [], 0
    while True:
        pieces.append((level ** (1 / GAMMA) * 255 + 0.5).astype(np.uint8).reshape(-1, 3))
        starts.append(start)
        start += len(pieces[-1])
        if level.shape[1] <= 4:
            return np.concatenate(pieces), np.array(starts, np.int64)
        level = (level[:, ::2, ::2] + level[:, 1::2, ::2] + level[:, ::2, 1::2] + level[:, 1::2, 1::2]) / 4


def _density(uv: Floats, area: Floats, part: Array, parts: int) -> Floats:
    """Texels per metre of every face: the mean of its part."""
    one, two = uv[:, 1] - uv[:, 0], uv[:, 2] - uv[:, 0]
    covered = np.abs(one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0])
    whole = np.bincount(part, covered, parts), np.bincount(part, area, parts)
    return np.asarray((np.sqrt(whole[0] / (whole[1] + 1e-12)) * SIZE)[part])
