"""Seal, ledger and run store: written once, hashed, chained."""
