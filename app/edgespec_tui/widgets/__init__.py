"""The parts of the screen, one job each."""
