"""Text to ids and back: trained here, or brought along."""
