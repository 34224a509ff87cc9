"""The loops that numba compiles: drawing triangles, shading pixels, following rays, baking light.

Plain arithmetic on arrays, compiled once and kept in numba's cache.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from wanderlearn.compiling import compiled

__all__ = ["bake", "cast_rays", "draw_triangles", "shade"]

A = npt.NDArray[Any]


@compiled
def draw_triangles(
    vertices: A, faces: A, normals: A, solid: A, chunks: A, spheres: A, sees: A, windows: A, eye: A, basis: A,
    focal: float, near: float, seen: A, inverse: A, which: A, second: A, third: A,
) -> None:  # fmt: skip
    """Fill the buffers: 1 / depth, the face, and the weights of its second and third corner.

    chunks [c, 4]: the range of vertices and of faces of each; spheres [c, 4] around them; sees [c, rooms]:
    whether a chunk is part of a room; windows [rooms, 4]: the part of the view through which a room is seen
    (left, right, top, bottom as tangents), empty where left > right.
    """
    height, width = which.shape
    inverse[:] = 0.0
    which[:] = -1
    cx, cy = width * 0.5, height * 0.5
    corner = np.empty((4, 3))
    weight = np.empty((4, 3))
    for c in range(chunks.shape[0]):
        dx, dy, dz = spheres[c, 0] - eye[0], spheres[c, 1] - eye[1], spheres[c, 2] - eye[2]
        x = basis[0, 0] * dx + basis[0, 1] * dy + basis[0, 2] * dz
        y = basis[1, 0] * dx + basis[1, 1] * dy + basis[1, 2] * dz
        z = basis[2, 0] * dx + basis[2, 1] * dy + basis[2, 2] * dz
        r = spheres[c, 3]
        if z < -r:
            continue
        visible = False
        for room in range(windows.shape[0]):
            left, right, top, bottom = windows[room, 0], windows[room, 1], windows[room, 2], windows[room, 3]
            if not sees[c, room] or left > right:
                continue
            if (left * z - x) > r * np.sqrt(1 + left * left) or (x - right * z) > r * np.sqrt(
                1 + right * right
            ):
                continue
            if (top * z - y) > r * np.sqrt(1 + top * top) or (y - bottom * z) > r * np.sqrt(
                1 + bottom * bottom
            ):
                continue
            visible = True
            break
        if not visible:
            continue
        for i in range(chunks[c, 0], chunks[c, 1]):
            dx, dy, dz = vertices[i, 0] - eye[0], vertices[i, 1] - eye[1], vertices[i, 2] - eye[2]
            for k in range(3):
                seen[i, k] = basis[k, 0] * dx + basis[k, 1] * dy + basis[k, 2] * dz
        for t in range(chunks[c, 2], chunks[c, 3]):
            i0, i1, i2 = faces[t, 0], faces[t, 1], faces[t, 2]
            if (
                solid[t]
                and (
                    normals[t, 0] * (vertices[i0, 0] - eye[0])
                    + normals[t, 1] * (vertices[i0, 1] - eye[1])
                    + normals[t, 2] * (vertices[i0, 2] - eye[2])
                )
                > 1e-5
            ):
                continue
            z0, z1, z2 = seen[i0, 2], seen[i1, 2], seen[i2, 2]
            count = 0
            if z0 >= near and z1 >= near and z2 >= near:
                count = 3
                for k in range(3):
                    corner[0, k] = seen[i0, k]
                    corner[1, k] = seen[i1, k]
                    corner[2, k] = seen[i2, k]
            elif z0 < near and z1 < near and z2 < near:
                continue
            else:  # cut off what is behind the eye
                for e in range(3):
                    a, b = faces[t, e], faces[t, (e + 1) % 3]
                    za, zb = seen[a, 2], seen[b, 2]
                    if za >= near:
                        for k in range(3):
                            corner[count, k] = seen[a, k]
                            weight[count, k] = 0.0
                        weight[count, e] = 1.0
                        count += 1
                    if (za >= near) != (zb >= near):
                        s = (near - za) / (zb - za)
                        for k in range(3):
                            corner[count, k] = seen[a, k] + s * (seen[b, k] - seen[a, k])
                            weight[count, k] = 0.0
                        weight[count, e] = 1.0 - s
                        weight[count, (e + 1) % 3] = s
                        count += 1
            whole = z0 >= near and z1 >= near and z2 >= near
            for q in range(1, count - 1):
                ia, ib, ic = 1.0 / corner[0, 2], 1.0 / corner[q, 2], 1.0 / corner[q + 1, 2]
                xa, ya = cx + focal * corner[0, 0] * ia, cy + focal * corner[0, 1] * ia
                xb, yb = cx + focal * corner[q, 0] * ib, cy + focal * corner[q, 1] * ib
                xc, yc = cx + focal * corner[q + 1, 0] * ic, cy + focal * corner[q + 1, 1] * ic
                low_x, high_x = min(xa, xb, xc), max(xa, xb, xc)
                low_y, high_y = min(ya, yb, yc), max(ya, yb, yc)
                if high_x < 0.5 or high_y < 0.5 or low_x > width - 0.5 or low_y > height - 0.5:
                    continue
                from_x, to_x = max(0, int(np.ceil(low_x - 0.5))), min(width - 1, int(np.floor(high_x - 0.5)))
                from_y, to_y = max(0, int(np.ceil(low_y - 0.5))), min(height - 1, int(np.floor(high_y - 0.5)))
                if from_x > to_x or from_y > to_y:
                    continue
                area = (xb - xa) * (yc - ya) - (xc - xa) * (yb - ya)
                if area == 0.0:
                    continue
                scale = 1.0 / area
                bx, by = (yc - ya) * scale, -(xc - xa) * scale
                gx, gy = -(yb - ya) * scale, (xb - xa) * scale
                slack = -1e-9
                for row in range(from_y, to_y + 1):
                    beta = (from_x + 0.5 - xa) * bx + (row + 0.5 - ya) * by
                    gamma = (from_x + 0.5 - xa) * gx + (row + 0.5 - ya) * gy
                    for column in range(from_x, to_x + 1):
                        if beta >= slack and gamma >= slack and beta + gamma <= 1.0 - slack:
                            alpha = 1.0 - beta - gamma
                            far = alpha * ia + beta * ib + gamma * ic
                            if far > inverse[row, column]:
                                inverse[row, column] = far
                                which[row, column] = t
                                pb, pc = beta * ib / far, gamma * ic / far
                                if whole:
                                    second[row, column] = pb
                                    third[row, column] = pc
                                else:
                                    pa = 1.0 - pb - pc
                                    second[row, column] = (
                                        pa * weight[0, 1] + pb * weight[q, 1] + pc * weight[q + 1, 1]
                                    )
                                    third[row, column] = (
                                        pa * weight[0, 2] + pb * weight[q, 2] + pc * weight[q + 1, 2]
                                    )
                        beta += bx
                        gamma += gx


@compiled
def shade(
    faces: A, uv: A, colours: A, textures: A, ids: A, density: A, normals: A, light: A, texels: A, levels: A,
    size: int, linear: A, tone: A, top: float, grain: A, grain_start: int, grain_size: float, dim: float,
    basis: A, focal: float, samples: int, inverse: A, which: A, second: A, third: A, rgb: A, out: A, depth: A,
) -> None:  # fmt: skip
    """Colour, id and depth of every pixel from its samples.

    Samples of one face in a pixel are shaded once, at their mean. The id is that of most samples; of equals
    the nearest.
    """
    height, width = out.shape
    n = samples * samples
    found = np.empty(n, np.int64)
    near = np.empty(n)
    left = np.empty(n)
    right = np.empty(n)
    last = levels.shape[0] - 1
    mask = grain.shape[0] - 1
    for y in range(height):
        for x in range(width):
            red, green, blue = 0.0, 0.0, 0.0
            k = 0
            same = True
            for row in range(y * samples, y * samples + samples):
                for column in range(x * samples, x * samples + samples):
                    found[k] = which[row, column]
                    near[k] = inverse[row, column]
                    left[k] = second[row, column]
                    right[k] = third[row, column]
                    same = same and found[k] == found[0]
                    k += 1
            done = 0  # samples already shaded
            for k in range(n):
                if done == n:
                    break
                t = found[k]
                if t < 0:
                    done += 1
                    continue
                again = False
                for j in range(k):
                    if found[j] == t:
                        again = True
                        break
                if again:
                    continue
                count, b, c, far = 0, 0.0, 0.0, 0.0
                for j in range(k, n):
                    if found[j] == t:
                        b += left[j]
                        c += right[j]
                        far += near[j]
                        count += 1
                done += count
                b /= count
                c /= count
                far /= count
                a = 1.0 - b - c
                i0, i1, i2 = faces[t, 0], faces[t, 1], faces[t, 2]
                r, g, u_ = colours[t, 0], colours[t, 1], colours[t, 2]
                texture = textures[t]
                if texture >= 0:
                    px, py = (x + 0.5 - width * 0.5) / focal, (y + 0.5 - height * 0.5) / focal
                    slant = 0.0  # how squarely the face is seen
                    for m in range(3):
                        slant += normals[t, m] * (basis[0, m] * px + basis[1, m] * py + basis[2, m])
                    slant = max(0.08, abs(slant) / np.sqrt(1.0 + px * px + py * py))
                    step = density[t] / (far * focal) / np.sqrt(slant)  # texels from pixel to pixel
                    level = 0
                    while step > 1.4 and level < last:
                        step *= 0.5
                        level += 1
                    side = size >> level
                    u = a * uv[i0, 0] + b * uv[i1, 0] + c * uv[i2, 0]
                    v = a * uv[i0, 1] + b * uv[i1, 1] + c * uv[i2, 1]
                    u = (u - np.floor(u)) * side - 0.5
                    v = (v - np.floor(v)) * side - 0.5
                    fu, fv = np.floor(u), np.floor(v)
                    du, dv = u - fu, v - fv
                    u0, v0 = int(fu) & (side - 1), int(fv) & (side - 1)  # the side is a power of two
                    u1, v1 = (u0 + 1) & (side - 1), (v0 + 1) & (side - 1)
                    start = levels[level] + texture * side * side
                    p00, p01 = start + v0 * side + u0, start + v0 * side + u1
                    p10, p11 = start + v1 * side + u0, start + v1 * side + u1
                    w00, w01, w10, w11 = (1 - du) * (1 - dv), du * (1 - dv), (1 - du) * dv, du * dv
                    r *= (
                        linear[texels[p00, 0]] * w00
                        + linear[texels[p01, 0]] * w01
                        + linear[texels[p10, 0]] * w10
                        + linear[texels[p11, 0]] * w11
                    )
                    g *= (
                        linear[texels[p00, 1]] * w00
                        + linear[texels[p01, 1]] * w01
                        + linear[texels[p10, 1]] * w10
                        + linear[texels[p11, 1]] * w11
                    )
                    u_ *= (
                        linear[texels[p00, 2]] * w00
                        + linear[texels[p01, 2]] * w01
                        + linear[texels[p10, 2]] * w10
                        + linear[texels[p11, 2]] * w11
                    )
                red += count * r * (a * light[i0, 0] + b * light[i1, 0] + c * light[i2, 0])
                green += count * g * (a * light[i0, 1] + b * light[i1, 1] + c * light[i2, 1])
                blue += count * u_ * (a * light[i0, 2] + b * light[i1, 2] + c * light[i2, 2])
            ex, ey = 2.0 * x / width - 1.0, 2.0 * y / height - 1.0
            scale = (1.0 - dim * (ex * ex + ey * ey)) * (tone.shape[1] - 1) / (top * n)
            at = grain_start + 3 * (y * width + x)
            for channel in range(3):
                value = red if channel == 0 else (green if channel == 1 else blue)
                level = min(tone.shape[1] - 1, max(0, int(value * scale)))
                shown = tone[channel, level] + grain_size * grain[((at + channel) * 40503) & mask]
                rgb[y, x, channel] = np.uint8(min(255.0, max(0.0, shown + 0.5)))
            best, votes, close = 0, -1, -1.0
            for k in range(1 if same else n):
                mine = ids[found[k]] if found[k] >= 0 else -1
                count = 0
                for j in range(n):
                    other = ids[found[j]] if found[j] >= 0 else -1
                    if other == mine:
                        count += 1
                if count > votes or (count == votes and near[k] > close):
                    best, votes, close = k, count, near[k]
            out[y, x] = ids[found[best]] if found[best] >= 0 else 0
            depth[y, x] = 1.0 / near[best] if found[best] >= 0 else 0.0


@compiled
def _hit(o0: float, o1: float, o2: float, d0: float, d1: float, d2: float, reach: float, any_hit: bool,
         low: A, high: A, triangles: A, stack: A) -> tuple[float, int]:  # fmt: skip
    """The distance to the first triangle along a ray and its number, or -1 and -1.

    low, high [n, 3]: boxes of a complete binary tree over the triangles [(n + 1) / 2 * 4, 3, 3] in order.
    """
    r0 = 1.0 / d0 if d0 != 0 else 1e30
    r1 = 1.0 / d1 if d1 != 0 else 1e30
    r2 = 1.0 / d2 if d2 != 0 else 1e30
    inner = low.shape[0] // 2
    best, number, depth = reach, -1, 1
    stack[0] = 0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        a, b = (low[node, 0] - o0) * r0, (high[node, 0] - o0) * r0
        enter, leave = min(a, b), max(a, b)
        a, b = (low[node, 1] - o1) * r1, (high[node, 1] - o1) * r1
        enter, leave = max(enter, min(a, b)), min(leave, max(a, b))
        a, b = (low[node, 2] - o2) * r2, (high[node, 2] - o2) * r2
        enter, leave = max(enter, min(a, b)), min(leave, max(a, b))
        if leave < max(enter, 0.0) or enter > best:
            continue
        if node < inner:
            stack[depth] = 2 * node + 2
            stack[depth + 1] = 2 * node + 1
            depth += 2
            continue
        for t in range((node - inner) * 4, (node - inner) * 4 + 4):
            ax, ay, az = triangles[t, 0, 0], triangles[t, 0, 1], triangles[t, 0, 2]
            ux, uy, uz = triangles[t, 1, 0] - ax, triangles[t, 1, 1] - ay, triangles[t, 1, 2] - az
            vx, vy, vz = triangles[t, 2, 0] - ax, triangles[t, 2, 1] - ay, triangles[t, 2, 2] - az
            px, py, pz = d1 * vz - d2 * vy, d2 * vx - d0 * vz, d0 * vy - d1 * vx
            det = ux * px + uy * py + uz * pz
            if abs(det) < 1e-14:
                continue
            inv = 1.0 / det
            sx, sy, sz = o0 - ax, o1 - ay, o2 - az
            u = (sx * px + sy * py + sz * pz) * inv
            if u < 0.0 or u > 1.0:
                continue
            qx, qy, qz = sy * uz - sz * uy, sz * ux - sx * uz, sx * uy - sy * ux
            v = (d0 * qx + d1 * qy + d2 * qz) * inv
            if v < 0.0 or u + v > 1.0:
                continue
            far = (vx * qx + vy * qy + vz * qz) * inv
            if 1e-4 < far < best:
                best, number = far, t
                if any_hit:
                    return best, number
    return (best, number) if number >= 0 else (-1.0, -1)


@compiled
def cast_rays(origin: A, directions: A, low: A, high: A, triangles: A) -> A:
    """The number of the first triangle each ray meets, or -1."""
    stack = np.empty(128, np.int64)
    out = np.empty(directions.shape[0], np.int64)
    for i in range(directions.shape[0]):
        _, out[i] = _hit(
            origin[0],
            origin[1],
            origin[2],
            directions[i, 0],
            directions[i, 1],
            directions[i, 2],
            1e9,
            False,
            low,
            high,
            triangles,
            stack,
        )
    return out


@compiled
def bake(
    vertices: A, normals: A, glow: A, room: A, lamps: A, lamp_rooms: A, ambient: A, rays: A,
    low: A, high: A, triangles: A, lamp_samples: int, offsets: A,
) -> A:  # fmt: skip
    """Light at every vertex, and how open it lies: lamps and windows with soft shadows, and dark corners.

    lamps [n, 10]: place, colour, half size, softness; lamp_rooms [n, rooms]: which rooms a lamp can reach;
    rays [m, 3]: directions over a ball; offsets [k, 3]: places within a lamp, from -1 to 1.
    """
    stack = np.empty(128, np.int64)
    out = np.zeros((vertices.shape[0], 4), np.float32)
    out[:, 3] = 1.0
    for i in range(vertices.shape[0]):
        n0, n1, n2 = normals[i, 0], normals[i, 1], normals[i, 2]
        o0, o1, o2 = vertices[i, 0] + n0 * 0.006, vertices[i, 1] + n1 * 0.006, vertices[i, 2] + n2 * 0.006
        if glow[i] > 0.0:
            for k in range(3):
                out[i, k] = glow[i]
            if glow[i] >= 0.75:
                continue
        spin = (i * 7919) % offsets.shape[0]
        open_sky = 0.0
        for k in range(rays.shape[0]):
            d0 = rays[k, 0] + n0
            d1 = rays[k, 1] + n1
            d2 = rays[k, 2] + n2
            m = np.sqrt(d0 * d0 + d1 * d1 + d2 * d2) + 1e-9
            far, _ = _hit(o0, o1, o2, d0 / m, d1 / m, d2 / m, 1.3, False, low, high, triangles, stack)
            open_sky += 1.0 if far < 0 else far / 1.3 * 0.85
        open_sky /= rays.shape[0]
        out[i, 3] = open_sky
        if open_sky < 0.02:  # buried in something
            continue
        for k in range(3):
            out[i, k] += ambient[k] * open_sky
        for j in range(lamps.shape[0]):
            if not lamp_rooms[j, room[i]]:
                continue
            l0, l1, l2 = lamps[j, 0] - o0, lamps[j, 1] - o1, lamps[j, 2] - o2
            bright = max(lamps[j, 3], lamps[j, 4], lamps[j, 5])
            if bright / (l0 * l0 + l1 * l1 + l2 * l2 + lamps[j, 9]) < 0.008:  # too far to be noticed
                continue
            total = 0.0
            for s in range(lamp_samples):
                w = (spin + s * 37) % offsets.shape[0]
                l0 = lamps[j, 0] + lamps[j, 6] * offsets[w, 0] - o0
                l1 = lamps[j, 1] + lamps[j, 7] * offsets[w, 1] - o1
                l2 = lamps[j, 2] + lamps[j, 8] * offsets[w, 2] - o2
                square = l0 * l0 + l1 * l1 + l2 * l2
                m = np.sqrt(square) + 1e-9
                facing = (l0 * n0 + l1 * n1 + l2 * n2) / m
                if facing <= 0.0 or square > 64.0:
                    continue
                far, _ = _hit(o0, o1, o2, l0 / m, l1 / m, l2 / m, m, True, low, high, triangles, stack)
                if far < 0:
                    total += facing / (square + lamps[j, 9])
            for k in range(3):
                out[i, k] += total / lamp_samples * lamps[j, 3 + k]
    return out
