"""Pages for reading, served on loopback to one person: the review of a run, and blind reading. Needs extra `report`."""
