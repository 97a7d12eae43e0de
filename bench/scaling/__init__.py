"""What one machine was measured to do, and a model of what many of them would."""
