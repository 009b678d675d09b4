"""ONNX models as symbols: a node becomes operators of the library and descriptions in TDL."""

from .exporter import export_onnx
from .importer import ImportedModel, from_onnx, read_onnx

__all__ = ["ImportedModel", "export_onnx", "from_onnx", "read_onnx"]
