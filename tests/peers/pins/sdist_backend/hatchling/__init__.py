"""Stands in for the real build backend while `pip download` asks a source package for its name (see build.py)."""
