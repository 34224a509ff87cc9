"""The paper's own figures, as printed: its three main tables, forgetting and the two ablations.

All in percent, on 2,000 test sequences where nothing else is said. Ours are in `results/`; `wander table`
sets them side by side.
"""

from typing import Final, Literal, NamedTuple

__all__ = [
    "ARCHITECTURE_ABLATION_AP",
    "FORGETTING",
    "LEARNERS",
    "METHOD_NAMES",
    "OURS",
    "PAPER_AP",
    "ROOMS_STATISTICS",
    "SEMI_ABLATION_AP",
    "SETTINGS",
    "TABLES",
    "Figures",
    "Intervals",
    "Row",
    "Setting",
]

Setting = Literal["supervised", "semi"]
SETTINGS: Final[dict[Setting, str]] = {"supervised": "", "semi": "-semi"}
"""The two settings, and what each adds to the name of a preset and of its result."""

LEARNERS: Final = {
    "cpm": "CPM",
    "protonet": "Online ProtoNet",
    "matchingnet": "Online MatchingNet",
    "imp": "Online IMP",
    "dnc": "DNC",
    "lstm": "LSTM",
    "oml-u": "OML-U",
    "oml-u-plus": "OML-U++",
}
"""The eight methods of the main tables, by our name for them, and the paper's name."""
OURS: Final = {"wayfarer": "Wayfarer (ours)"}
"""Methods that are not in the paper, and have no figures of it."""
METHOD_NAMES: Final = LEARNERS | OURS
"""All methods a table has a row for."""


class Figures(NamedTuple):
    """AP, and 1- and 3-shot accuracy with their standard errors."""

    ap: float
    one_shot: float
    one_shot_se: float
    three_shot: float
    three_shot_se: float


class Row(NamedTuple):
    """One method in both settings."""

    supervised: Figures
    semi: Figures
    pretrained: bool = False  # marked * in the paper: the encoder was pretrained by classification


TABLES: Final[dict[str, dict[str, Row]]] = {
    "omniglot": {
        "cpm": Row(Figures(94.17, 91.99, 0.11, 97.74, 0.08), Figures(90.42, 93.18, 0.16, 97.89, 0.15)),
        "protonet": Row(Figures(90.49, 85.68, 0.15, 96.95, 0.09), Figures(84.61, 88.71, 0.13, 97.61, 0.17)),
        "matchingnet": Row(
            Figures(88.69, 84.82, 0.15, 95.55, 0.11), Figures(84.39, 88.77, 0.13, 97.28, 0.17)
        ),
        "imp": Row(Figures(90.15, 85.74, 0.15, 96.66, 0.09), Figures(81.62, 88.68, 0.13, 97.09, 0.19)),
        "dnc": Row(Figures(81.30, 78.87, 0.19, 91.01, 0.15), Figures(81.37, 88.56, 0.12, 93.81, 0.26)),
        "lstm": Row(Figures(64.34, 61.00, 0.22, 81.85, 0.21), Figures(54.34, 68.30, 0.20, 76.38, 0.49)),
        "oml-u": Row(Figures(77.38, 70.98, 0.21, 89.13, 0.16), Figures(66.70, 74.65, 0.19, 90.81, 0.34)),
        # The authors' own README has other accuracies for its semi-supervised half: 89.07 and 89.40.
        "oml-u-plus": Row(Figures(86.85, 88.43, 0.14, 92.01, 0.14), Figures(81.39, 71.64, 0.19, 93.72, 0.27)),
    },
    "rooms": {
        "cpm": Row(Figures(89.14, 88.39, 0.27, 91.31, 0.26), Figures(84.12, 86.17, 0.30, 91.16, 0.44)),
        "protonet": Row(Figures(86.01, 84.89, 0.31, 89.58, 0.28), Figures(76.36, 80.67, 0.34, 88.83, 0.49)),
        "matchingnet": Row(
            Figures(85.91, 82.82, 0.32, 89.99, 0.26), Figures(78.99, 80.08, 0.34, 92.43, 0.41)
        ),
        "imp": Row(Figures(87.33, 85.28, 0.31, 90.83, 0.25), Figures(75.36, 84.57, 0.31, 91.17, 0.43)),
        "dnc": Row(Figures(80.86, 82.15, 0.32, 87.30, 0.30), Figures(73.49, 80.27, 0.33, 87.87, 0.49)),
        "lstm": Row(Figures(45.67, 59.90, 0.40, 61.85, 0.45), Figures(33.32, 52.71, 0.38, 55.83, 0.76)),
        "oml-u": Row(Figures(76.27, 73.91, 0.37, 83.99, 0.33), Figures(63.40, 70.67, 0.38, 85.25, 0.56)),
        "oml-u-plus": Row(Figures(88.03, 88.32, 0.27, 89.61, 0.29), Figures(81.90, 84.79, 0.31, 89.80, 0.47)),
    },
    "imagenet": {
        "cpm": Row(Figures(34.43, 40.40, 0.21, 60.29, 0.26), Figures(24.75, 44.58, 0.21, 58.72, 0.53)),
        "protonet": Row(
            Figures(23.10, 32.82, 0.19, 49.98, 0.25),
            Figures(15.76, 36.69, 0.18, 55.47, 0.53),
            pretrained=True,
        ),
        "matchingnet": Row(Figures(13.05, 20.61, 0.15, 38.73, 0.24), Figures(9.32, 25.96, 0.16, 55.32, 0.51)),
        "imp": Row(Figures(14.25, 22.92, 0.16, 41.01, 0.25), Figures(4.55, 20.70, 0.15, 51.23, 0.53)),
        "dnc": Row(
            Figures(26.80, 33.45, 0.19, 55.78, 0.27),
            Figures(16.50, 39.53, 0.19, 54.10, 0.54),
            pretrained=True,
        ),
        "lstm": Row(
            Figures(22.54, 28.14, 0.20, 52.07, 0.27),
            Figures(13.50, 30.02, 0.20, 46.95, 0.56),
            pretrained=True,
        ),
        "oml-u": Row(Figures(21.89, 15.06, 0.14, 52.52, 0.27), Figures(10.16, 22.74, 0.17, 55.81, 0.55)),
    },
}
"""The main tables by world and learner (OML-U++ has no row in RoamingImageNet's)."""

PAPER_AP: Final[dict[str, float]] = {
    f"{learner}-{world}{suffix}": getattr(row, setting).ap
    for world, rows in TABLES.items()
    for setting, suffix in SETTINGS.items()
    for learner, row in rows.items()
}
"""Test AP in the paper's tables, by the name of the preset that would repeat it."""


class Intervals(NamedTuple):
    """Accuracy by steps since the class was last met, in the order of `wanderlearn.metrics.BINS`."""

    supervised: tuple[float, ...]
    semi: tuple[float, ...]


FORGETTING: Final[dict[str, dict[str, dict[int, Intervals]]]] = {
    "omniglot": {
        "protonet": {
            1: Intervals((88.8, 86.9, 85.2, 84.7, 83.6, 81.1), (90.1, 88.9, 88.4, 87.6, 87.3, 85.1)),
            3: Intervals((97.2, 97.1, 96.6, 96.7, 96.5, 95.3), (97.8, 97.3, 97.1, 97.8, 97.7, 96.8)),
        },
        "cpm": {
            1: Intervals((96.1, 94.0, 93.0, 91.6, 88.2, 84.6), (95.9, 93.8, 92.8, 91.8, 89.4, 85.7)),
            3: Intervals((98.5, 98.2, 97.5, 97.2, 95.4, 95.5), (98.7, 97.5, 97.5, 96.5, 96.3, 92.9)),
        },
    },
    "rooms": {
        "protonet": {
            1: Intervals((93.5, 89.3, 79.4, 67.2, 60.3, 60.1), (86.5, 83.6, 76.3, 68.4, 64.7, 61.5)),
            3: Intervals((95.1, 91.8, 85.6, 78.2, 74.6, 73.8), (92.6, 88.0, 85.1, 81.1, 80.6, 76.7)),
        },
        "cpm": {
            1: Intervals((95.7, 92.2, 85.7, 75.2, 70.0, 66.4), (91.0, 88.7, 82.9, 77.0, 72.2, 66.5)),
            3: Intervals((96.1, 93.8, 87.7, 81.4, 79.1, 78.2), (94.8, 91.0, 86.9, 83.1, 82.7, 79.2)),
        },
    },
    "imagenet": {
        "protonet": {
            1: Intervals((40.8, 35.9, 33.0, 30.7, 27.0, 21.4), (40.5, 37.7, 35.9, 33.7, 31.5, 28.4)),
            3: Intervals((52.5, 50.3, 48.8, 47.2, 44.4, 42.3), (57.6, 55.1, 54.6, 52.3, 52.1, 49.5)),
        },
        "cpm": {
            1: Intervals((67.5, 52.9, 35.5, 24.2, 18.3, 13.8), (60.4, 51.3, 39.5, 26.6, 21.8, 15.4)),
            3: Intervals((77.8, 64.5, 46.6, 32.9, 24.7, 17.9), (76.1, 61.8, 48.6, 30.5, 24.1, 15.6)),
        },
    },
}
"""Accuracy after 1 and 3 labels by interval: world, learner, number of labels."""

ARCHITECTURE_ABLATION_AP: Final = {
    "Online ProtoNet": 91.22,
    "No h_RNN": 92.52,
    "h_RNN only": 93.48,
    "No metric": 93.61,
    "No thresholds": 93.98,
    "h = h_RNN": 93.70,
    "CPM Avg. Euc": 94.08,
    "CPM Avg. Cos": 94.57,
    "CPM GAU Euc": 94.11,
    "CPM GAU Cos": 94.65,
}
"""Validation AP on RoamingOmniglot; the configs of the same names are `ARCHITECTURE_ABLATIONS`."""

SEMI_ABLATION_AP: Final = {
    "Online ProtoNet": 90.83,
    "Online ProtoNet + Prototype": 89.10,
    "Online ProtoNet + Prototype + write thresholds": 91.22,
    "CPM": 92.57,
    "CPM + RNN": 93.16,
    "CPM + RNN + Prototype": 93.20,
    "CPM + RNN + Prototype + write thresholds": 94.08,
    "CPM + RNN + Prototype + write thresholds + GAU": 94.65,
}
"""Validation AP on RoamingOmniglot; the configs of the same names are `SEMI_ABLATIONS`."""

ROOMS_STATISTICS: Final = {
    "worlds": 90,
    "files": 6_971,
    "frames": 1_220_602,
    "instances": 7_000,  # "over 7,000", "7.0K"
    "categories": 21,
    "same_next": 30.0,  # percent; the text does not say how meetings follow each other
    "viewpoints_per_100": 3.0,
}
"""RoamingRooms as the authors recorded it in Matterport3D. Of objects per frame, instances and viewpoints the
paper says only how they fall off: exponentially, and with long tails."""
