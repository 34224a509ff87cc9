"""One self-contained page: words, tables, line charts and pictures, no network and no script."""

import base64
import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from wanderlearn.files import writing

__all__ = ["line_chart", "paragraph", "picture", "table", "write_page"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
DASHES = ("", "7 4", "2 3", "10 3 2 3", "1 5")  # lines differ in more than colour
STYLE = """
:root { color-scheme: light }
body { font: 16px/1.55 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 1080px;
       margin: 2.5rem auto; padding: 0 1.25rem }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 .5rem } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem }
p { max-width: 46rem } img { max-width: 100%; height: auto; border: 1px solid #e3e3e3 }
.wide { overflow-x: auto } table { border-collapse: collapse; margin: .6rem 0 }
th, td { padding: .35rem .9rem .35rem 0; text-align: right; border-bottom: 1px solid #e3e3e3;
         font-variant-numeric: tabular-nums } th { color: #555; font-weight: 600 }
th:first-child, td:first-child { text-align: left } .quiet { color: #666; font-size: .9rem }
svg text { font: 13px system-ui, sans-serif; fill: #444 }
"""


def write_page(path: Path, title: str, parts: Sequence[str]) -> None:
    """Write a page from parts made by the other functions here."""
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style>'
        f"<body><h1>{escape(title)}</h1>{''.join(parts)}</body></html>\n"
    )
    with writing(path) as part:
        part.write_text(page, encoding="utf-8")


def paragraph(text: str, *, heading: str | None = None, quiet: bool = False) -> str:
    """A paragraph, perhaps under a heading."""
    top = f"<h2>{escape(heading)}</h2>" if heading else ""
    return f"{top}<p{' class=quiet' if quiet else ''}>{escape(text)}</p>"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of words and figures."""
    top = "".join(f"<th>{escape(h)}</th>" for h in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def picture(path: Path, words: str) -> str:
    """A PNG, inside the page."""
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{escape(words)}" src="data:image/png;base64,{data}">'


def line_chart(
    series: Mapping[str, Sequence[tuple[float, float]]], *, across: str, up: str, low: float, high: float
) -> str:
    """Lines over a common axis, each named at its end. Points with NaN are left out."""
    width, height, left, right, top, bottom = 900, 340, 56, 190, 16, 46
    furthest = max(x for points in series.values() for x, _ in points)
    most = 20 * math.ceil(furthest / 20)  # so that the quarters of the axis are round numbers

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            left + x / most * (width - left - right),
            top + (high - y) / (high - low) * (height - top - bottom),
        )

    drawn = []
    for n in range(5):
        y = low + n / 4 * (high - low)
        (x0, at), (x1, _) = place(0, y), place(most, y)
        drawn.append(f'<line x1="{x0:.1f}" x2="{x1:.1f}" y1="{at:.1f}" y2="{at:.1f}" stroke="#e6e6e6"/>')
        drawn.append(f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{y:.0f}</text>')
        x, base = place(n / 4 * most, low)
        drawn.append(f'<text x="{x:.1f}" y="{base + 20:.1f}" text-anchor="middle">{n / 4 * most:.0f}</text>')
    ends: list[tuple[float, str]] = []
    for n, (name, points) in enumerate(series.items()):
        kept = [place(x, min(max(y, low), high)) for x, y in points if not math.isnan(y)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in kept)
        style = f'stroke="{COLOURS[n % 5]}" stroke-width="2.5" fill="none" stroke-dasharray="{DASHES[n % 5]}"'
        drawn.append(f'<polyline points="{path}" {style}/>')
        ends.append((kept[-1][1], f'style="fill:{COLOURS[n % 5]};font-weight:600">{escape(name)}'))
    at = -math.inf
    for y, words in sorted(ends):  # names one below the other, never on top of each other
        at = max(y, at + 17)
        drawn.append(f'<text x="{width - right + 10}" y="{at + 4:.1f}" {words}</text>')
    middle = left + (width - left - right) / 2
    drawn.append(f'<text x="{middle}" y="{height - 6}" text-anchor="middle">{escape(across)}</text>')
    label = f'<p class="quiet">{escape(up)}</p>'
    body = "".join(drawn)
    return f'{label}<div class="wide"><svg width="{width}" height="{height}" role="img">{body}</svg></div>'
