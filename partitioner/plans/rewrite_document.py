"""Rewrites in files: `{encode: {type: bfloat16, feedback: true}, delay: 1}` or `{encode: {powersgd: 4}}`."""

from __future__ import annotations

from collections.abc import Mapping

from ...dataflow.element_types import MIXED
from ...dataflow.rewrites.encoders import Cast, Encoder, PowerSgd, Relay, Rewrite
from ...errors import PlanError
from ...support.strict_documents import expect_keys, number_between, typed, typed_object
from ...support.wording import alternatives

ENTRIES = ("encode", "delay")
"""The entries that people write; plan files have `relay` as well."""

DELAY_LIMIT = 1024
"""The longest delay that a file may ask for: every iteration of it keeps a gradient in memory."""

RANK_LIMIT = 1024
"""The highest rank that a file may ask for: every column is made orthogonal by operations of its own."""


def encode_rewrite(rewrite: Rewrite) -> dict[str, object]:
    """Return the entries of a rewrite, without those that are left out."""
    entries: dict[str, object] = {}
    if rewrite.encoder is not None:
        entries["encode"] = _encoded(rewrite.encoder)
    if rewrite.delay:
        entries["delay"] = rewrite.delay
    if rewrite.relay is not None:
        entries["relay"] = str(rewrite.relay)
    return entries


def decode_rewrite(entries: Mapping[str, object], place: str) -> Rewrite:
    """Read the entries of a rewrite among others. Raises PlanError naming the entry that is wrong."""
    encoder = _encoder(entries["encode"], f"{place}.encode") if "encode" in entries else None
    delay = number_between(entries.get("delay", 0), f"{place}.delay", 0, DELAY_LIMIT)
    return Rewrite(encoder, delay, _relay(entries["relay"], f"{place}.relay") if "relay" in entries else None)


def _encoded(encoder: Encoder) -> dict[str, object]:
    match encoder:
        case Cast(dtype=dtype, feedback=feedback):
            return {"type": dtype, **({"feedback": True} if feedback else {})}
        case PowerSgd(rank=rank):
            return {"powersgd": rank}


def _relay(value: object, place: str) -> Relay:
    found = typed(value, str, place)
    if found not in list(Relay):
        raise PlanError(f"{place} is {found!r}{alternatives(found, [str(each) for each in Relay])}")
    return Relay(found)


def _encoder(value: object, place: str) -> Encoder:
    """Read an encoder: the name of a type, or what it is with its settings."""
    entries = typed_object({"type": value} if isinstance(value, str) else value, place)
    if "powersgd" in entries:
        expect_keys(entries, ("powersgd",), place)
        return PowerSgd(number_between(entries["powersgd"], f"{place}.powersgd", 1, RANK_LIMIT))
    expect_keys(entries, ("type",), place, ("feedback",))
    feedback = typed(entries.get("feedback", False), bool, f"{place}.feedback")
    dtype = typed(entries["type"], str, f"{place}.type")
    if dtype not in MIXED:
        raise PlanError(f"{place}.type is {dtype!r}{alternatives(dtype, MIXED)}")
    return Cast(dtype, feedback)
