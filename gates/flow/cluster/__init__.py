"""Work on a cluster, which needs the extra `cluster`."""
