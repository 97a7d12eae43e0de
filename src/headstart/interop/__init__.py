"""Other tools' forms: their weights as a base, our runs as their models, each checked."""
