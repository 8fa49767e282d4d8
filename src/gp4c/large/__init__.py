"""The same sums without the rows: streams, compression, cluster."""
