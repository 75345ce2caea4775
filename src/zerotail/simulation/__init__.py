"""Both sites in one thread: the protocol's own code, driven by a world that crashes it at every step."""
