"""The OpenAI-compatible server that speaks for base and adapters: client, canary, embedded seat."""
