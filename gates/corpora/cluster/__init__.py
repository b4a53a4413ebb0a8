"""Sources that need the extra `cluster`: remote files, Zstandard, Parquet."""
