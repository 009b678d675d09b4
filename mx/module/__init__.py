"""`mx.mod`: a symbol trained over all devices of its context, every operator and tensor partitioned."""

from .base_module import BaseModule
from .bucketing_module import BucketingModule
from .module import Module

__all__ = ["BaseModule", "BucketingModule", "Module"]
