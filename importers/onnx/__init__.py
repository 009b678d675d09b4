"""ONNX models as symbols: a node becomes operators of the library and descriptions in TDL."""

from .importer import ImportedModel, from_onnx, read_onnx

__all__ = ["ImportedModel", "from_onnx", "read_onnx"]
