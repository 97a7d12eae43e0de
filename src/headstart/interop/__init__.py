"""Models of other tools as bases, and exports of runs for other tools."""
