"""A colour for every worker, distinct with any colour vision, and a colour for text on it."""

from __future__ import annotations

FAMILIES = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#882255")
"""Okabe and Ito (2008) with wine for black, which is lost on a dark page."""

MANY = "#D0D0D0"
"""The colour of a tile that too many workers share to be shown one by one."""

BLACK, WHITE = "#000000", "#FFFFFF"
STRONGEST_SHADE = 0.6


def palette(workers: int) -> tuple[str, ...]:
    """Return a colour per worker.

    Beyond eight, neighbours share one of eight and differ in how light it is.
    """
    if workers <= len(FAMILIES):
        return FAMILIES[:workers]
    family = -(-workers // len(FAMILIES))
    return tuple(_shade(FAMILIES[w // family], w % family, family) for w in range(workers))


def ink(fill: str) -> str:
    """Return black or white, whichever has the higher contrast with `fill`."""
    return BLACK if contrast(fill, BLACK) >= contrast(fill, WHITE) else WHITE


def contrast(first: str, second: str) -> float:
    """Return the ratio of two colours' luminances as the Web Content Accessibility Guidelines define it, 1 to
    21.
    """
    lighter, darker = sorted(map(luminance, (first, second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    """Return the relative luminance of `#rrggbb`, 0 to 1."""
    red, green, blue = (_linear(channel / 255) for channel in _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _shade(colour: str, number: int, count: int) -> str:
    """Return the colour itself first, then ever closer to white."""
    toward = STRONGEST_SHADE * number / max(count - 1, 1)
    mixed = (round(channel + (255 - channel) * toward) for channel in _channels(colour))
    return "#" + "".join(f"{channel:02X}" for channel in mixed)
