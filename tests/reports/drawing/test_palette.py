"""Workers' colours differ with any colour vision, and numbers on them are legible."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tofu.reports.drawing.palette import FAMILIES, MANY, contrast, ink, palette

# Machado, Oliveira and Fernandes (2009), severity 1: what is left of linear red, green and blue.
VISION = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])
NOTICEABLE = 15
"""Distances in CIELAB beyond this are seen at a glance; 2.3 is just noticeable."""


def seen(colour: str, vision: np.ndarray) -> np.ndarray:
    """A colour in CIELAB as an eye with this vision sees it."""
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    ratios = XYZ @ np.clip(vision @ linear, 0, 1) / WHITE
    f = np.where(ratios > 0.008856, np.cbrt(ratios), 7.787 * ratios + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISION)
def test_eight_workers_are_told_apart(vision: str) -> None:
    lab = [seen(colour, VISION[vision]) for colour in FAMILIES]
    assert min(np.linalg.norm(a - b) for a, b in combinations(lab, 2)) > NOTICEABLE


@pytest.mark.parametrize("workers", [1, 2, 8, 9, 16, 64])
def test_every_worker_has_its_own_colour_and_a_readable_number(workers: int) -> None:
    colours = palette(workers)
    assert len(colours) == len(set(colours)) == workers
    for colour in (*colours, MANY):
        assert contrast(colour, ink(colour)) >= 4.5


def test_contrast_is_that_of_the_guidelines() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)
