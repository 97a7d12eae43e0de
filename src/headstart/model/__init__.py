"""The network: one base, several heads, and exact accounts of their parameters."""
