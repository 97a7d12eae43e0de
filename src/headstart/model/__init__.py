"""The network: one base, several heads, and the counts of their parameters."""
