"""The operator's work around a seat: what fits, what is supported; loading, costs and routes."""
