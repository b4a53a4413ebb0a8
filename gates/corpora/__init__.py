"""From manifests to verified texts: sources, cache, cleaner, splits."""
