"""The built-in seat: llama.cpp in this process behind a front that speaks vLLM's contract (extra `embedded`).

`serve` is the way in and needs no extra to be imported; the other modules do.
"""
