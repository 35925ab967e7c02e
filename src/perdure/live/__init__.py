"""observe -> advance -> record -> publish: what every run is doing, as it happens."""
