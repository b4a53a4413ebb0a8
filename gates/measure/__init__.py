"""Voice, memorisation and damage as pure functions on arrays and texts."""
