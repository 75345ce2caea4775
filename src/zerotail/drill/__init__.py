"""Rehearsed disasters on real processes: what is done, what is recorded meanwhile, and the verdict on the record."""
