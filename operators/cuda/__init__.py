"""Kernels derived from descriptions as CUDA C++ source: for any operator, any box, any worker."""

from ..emit.datatypes import DATA_TYPES, DataType, data_type
from ..emit.entry_functions import EntryFunction
from ..emit.kernel import CudaKernel, generate, translation_unit
from ..emit.packing import pack
from ..emit.parameters import ParameterStruct
from .launch.launch import Launch, launch_of, launches

__all__ = [
    "DATA_TYPES",
    "CudaKernel",
    "DataType",
    "EntryFunction",
    "Launch",
    "ParameterStruct",
    "data_type",
    "generate",
    "launch_of",
    "launches",
    "pack",
    "translation_unit",
]
