"""MXNet's own unit tests, run on `tofu.mx`, and counted by the reasons for which they fail.

The tests are read from a checkout of MXNet: `collection` loads their files. `reasons` says why a test failed.
"""
