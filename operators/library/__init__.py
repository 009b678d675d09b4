"""The operators of the library under the names of MXNet."""
