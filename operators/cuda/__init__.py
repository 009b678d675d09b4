"""Kernels derived from descriptions as CUDA C++ source: for any operator, any box, any worker."""

from .datatypes import DATA_TYPES, DataType, data_type
from .entries import Entry
from .kernel import CudaKernel, generate, translation_unit
from .launch import Launch, launch_of, launches
from .packing import pack
from .parameters import Parameters

__all__ = [
    "DATA_TYPES",
    "CudaKernel",
    "DataType",
    "Entry",
    "Launch",
    "Parameters",
    "data_type",
    "generate",
    "launch_of",
    "launches",
    "pack",
    "translation_unit",
]
