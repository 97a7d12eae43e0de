"""From one task to the next: swap the head, keep the base."""
