"""What Headstart is measured against, each as short as its users write it."""
