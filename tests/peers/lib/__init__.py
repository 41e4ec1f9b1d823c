"""The parts of tests/peers: fetching, servers, the binary, and what is checked."""
