"""Rehearsed disasters on real processes, each with a verdict."""
