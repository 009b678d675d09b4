"""Damage the bytes of files, and the entries of documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import Any

HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 2**31, 2**63, -(2**63), 10**30, 0.5, -0.5, 1e308, 5e-324),
    *("", "a", "*", "\0", "\x1b[2J", "\u202e", "a" * 300, "../../etc/passwd", "/dev/zero", "1", "{}"),
    *([], {}, [[]], [1, 2], ["a"], {"a": 1}, [[0, 1], [1, 2]], [None] * 40),
)
"""Values that an entry of a document may be replaced by."""

_TOKENS = tuple(
    each.encode()
    for each in (
        *("0", "-1", "1e999", "NaN", "Infinity", "null", "true", "[" * 500, "{" * 500, '"', "\\", "\\ud800"),
        *("\0", "\x1b[2J", "\u202e", "&a", "*a", "!!python/object:os.system", "<<: *a", "---", "\n", "\t"),
        *("9" * 400, "../", "/dev/zero", "]" * 9, "}" * 9, ":", ",", "9223372036854775808", "0x", "'"),
    )
)
_NUMBER = re.compile(rb"\d+")


def damaged(random: Random, data: bytes) -> bytes:
    """Return a file with one to four changes of bytes, numbers or tokens."""
    found = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(found) + 1)
        end = min(len(found), at + random.choice((1, 2, 4, 8, 64)))
        match random.randrange(9):
            case 0:
                del found[at:end]
            case 1:
                found[at:end] = random.randbytes(end - at)
            case 2 if at < len(found):
                found[at] ^= 1 << random.randrange(8)
            case 3:
                del found[at:]
            case 4:
                found[at:at] = found[at:end] * random.choice((1, 2, 50))
            case 5:
                found[at:end] = random.choice((b"\0", b"\xff", b"\x7f", b"\x80")) * (end - at)
            case 6:
                found[at:at] = random.choice(_TOKENS)
            case 7:
                numbers = list(_NUMBER.finditer(found))
                if numbers:
                    number = random.choice(numbers)
                    found[number.start() : number.end()] = random.choice(_TOKENS)
            case _:
                other = random.randrange(len(found) + 1)
                found[at:end] = found[other : other + random.choice((1, 8, 64))]
    return bytes(found)


def changed(random: Random, document: Any) -> Any:
    """Return a document with one or two entries replaced, removed, doubled, or taken from elsewhere."""
    for _ in range(random.choice((1, 1, 2))):
        places = [place for place in entries(document) if place]
        if not places:
            return random.choice(HOSTILE)
        place = random.choice(places)
        value = _at(document, random.choice(places)) if random.random() < 0.4 else random.choice(HOSTILE)
        if isinstance(_at(document, place), int) and random.random() < 0.5:
            value = _at(document, place) + random.choice((-1, 1, 2))
        document = _replaced(document, place, value, remove=random.random() < 0.2)
    return document


def entries(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every entry of a document."""
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from entries(each, (*at, key))


def _at(document: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        document = document[key]
    return document


def _replaced(value: Any, place: tuple[Any, ...], other: Any, *, remove: bool) -> Any:
    """Return a document with another entry at a place, or without it."""
    found = value.copy()
    if len(place) > 1:
        found[place[0]] = _replaced(value[place[0]], place[1:], other, remove=remove)
    elif remove:
        del found[place[0]]
    else:
        found[place[0]] = other
    return found
