"""The web app: a local page for studies, from the file with labels to the classifier in use."""
