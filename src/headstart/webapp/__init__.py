"""The app: a local web page for studies, from the file with labels to the classifier in use."""
