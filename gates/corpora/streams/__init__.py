"""Sources of any size as a stream: text, JSONL or Parquet, packed or not, local or remote, in parts that can be shared.

How a source is parted changes nothing about the words that are read.
"""
