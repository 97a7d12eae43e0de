"""From a person's files to rows and documents."""
