"""How good are the answers? Numbers from labels and probabilities; no network is known here."""
