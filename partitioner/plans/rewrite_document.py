"""Rewrites in files: `{encode: {type: bfloat16, feedback: true}, delay: 1}`, `{encode: {topk: 0.01}}`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...dataflow.element_types import MIXED
from ...dataflow.rewrites.encoders import Cast, Encoder, PartedRewrite, PowerSgd, Rewrite, TopK
from ...errors import PlanError
from ...support.document_place import DocumentPlace
from ...support.strict_documents import expect_keys, number_between, typed, typed_object
from ...support.wording import alternatives

ENTRIES = ("encode", "delay")
"""The entries that people write; plan files have `parts` and flags as well."""

FLAGS = ("by_arrival", "masked")
"""The rewrites that stand alone."""

DELAY_LIMIT = 1024
"""The longest delay that a file may ask for: every iteration of it keeps a gradient in memory."""

EXTENT_LIMIT = 1 << 40
"""The largest bound between parts."""

RANK_LIMIT = 1024
"""The highest rank that a file may ask for: every column is made orthogonal by operations of its own."""


def encode_rewrite(rewrite: Rewrite) -> dict[str, object]:
    """Return the entries of a rewrite, without those that are left out."""
    entries: dict[str, object] = {}
    if rewrite.encoder is not None:
        entries["encode"] = _encoded(rewrite.encoder)
    if rewrite.delay:
        entries["delay"] = rewrite.delay
    if rewrite.parts is not None:
        listed = [encode_rewrite(each) for each in rewrite.parts.rewrites]
        axis, bounds = rewrite.parts.axis, list(rewrite.parts.bounds)
        entries["parts"] = {"axis": axis, "bounds": bounds, "rewrites": listed}
    entries |= {flag: True for flag in FLAGS if getattr(rewrite, flag)}
    return entries


def decode_rewrite(entries: Mapping[str, object], place: DocumentPlace) -> Rewrite:
    """Read the entries of a rewrite among others. Raises PlanError naming the entry that is wrong."""
    encoder = _encoder(entries["encode"], place.key("encode")) if "encode" in entries else None
    delay = number_between(entries.get("delay", 0), place.key("delay"), 0, DELAY_LIMIT)
    return Rewrite(encoder, delay)


def decode_planned(value: object, place: DocumentPlace) -> Rewrite:
    """Read the rewrite of a plan. Raises PlanError naming the entry that is wrong."""
    entries = typed_object(value, place)
    expect_keys(entries, (), place, (*ENTRIES, "parts", *FLAGS))
    rewrite = decode_rewrite(entries, place)
    for flag in FLAGS:
        if typed(entries.get(flag, False), bool, place.key(flag)):
            if len(entries) > 1:
                raise PlanError(f"{place.key(flag)} stands next to other entries; leave them out")
            return Rewrite(by_arrival=flag == "by_arrival", masked=flag == "masked")
    if "parts" not in entries:
        return rewrite
    return replace(rewrite, parts=_parts(entries["parts"], place.key("parts")))


def _parts(value: object, place: DocumentPlace) -> PartedRewrite:
    entries = typed_object(value, place)
    expect_keys(entries, ("axis", "bounds", "rewrites"), place)
    bounds: list[object] = typed(entries["bounds"], list, place.key("bounds"))
    listed: list[object] = typed(entries["rewrites"], list, place.key("rewrites"))
    if len(listed) != len(bounds) + 1:
        raise PlanError(f"{place.key('rewrites')} has {len(listed)} entries for {len(bounds) + 1} parts")
    rewrites = []
    for number, each in enumerate(listed):
        part = typed_object(each, place.key("rewrites").item(number))
        expect_keys(part, (), place.key("rewrites").item(number), ENTRIES)
        rewrites.append(decode_rewrite(part, place.key("rewrites").item(number)))
    return PartedRewrite(
        number_between(entries["axis"], place.key("axis"), 0, 63),
        tuple(number_between(bound, place.key("bounds"), 0, EXTENT_LIMIT) for bound in bounds),
        tuple(rewrites),
    )


def _encoded(encoder: Encoder) -> dict[str, object]:
    match encoder:
        case Cast(dtype=dtype, feedback=feedback):
            return {"type": dtype, **({"feedback": True} if feedback else {})}
        case PowerSgd(rank=rank):
            return {"powersgd": rank}
        case TopK(elements=elements):
            return {"topk": elements}


def _encoder(value: object, place: DocumentPlace) -> Encoder:
    """Read an encoder: the name of a type, or what it is with its settings."""
    entries = typed_object({"type": value} if isinstance(value, str) else value, place)
    if "powersgd" in entries:
        expect_keys(entries, ("powersgd",), place)
        return PowerSgd(number_between(entries["powersgd"], place.key("powersgd"), 1, RANK_LIMIT))
    if "topk" in entries:
        expect_keys(entries, ("topk",), place)
        return _top_k(entries["topk"], place.key("topk"))
    expect_keys(entries, ("type",), place, ("feedback",))
    feedback = typed(entries.get("feedback", False), bool, place.key("feedback"))
    dtype = typed(entries["type"], str, place.key("type"))
    if dtype not in MIXED:
        raise PlanError(f"{place.key('type')} is {dtype!r}{alternatives(dtype, MIXED)}")
    return Cast(dtype, feedback)


def _top_k(value: object, place: DocumentPlace) -> TopK:
    """Read a number of elements, or a share of them."""
    if isinstance(value, float):
        if not 0 < value < 1:
            raise PlanError(f"{place} is {value}; write a number of elements, or a share between 0 and 1")
        return TopK(value)
    return TopK(number_between(value, place, 1, EXTENT_LIMIT))
