"""Tests, in one folder for each room of the package."""
