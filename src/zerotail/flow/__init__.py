"""The normal day: submit, produce, stage, gate, emit."""
