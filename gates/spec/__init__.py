"""From YAML to a checked Gate: schema, strict loader, checks, operating characteristics."""
