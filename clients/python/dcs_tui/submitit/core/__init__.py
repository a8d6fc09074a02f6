"""Modules with the names that they have in submitit.core."""
