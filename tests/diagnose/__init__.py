"""Tests of `accelsim.diagnose`."""
