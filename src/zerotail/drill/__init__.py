"""Rehearsed disasters: what is recorded while one runs, and the verdict on the record."""
