"""The command line: one file per command or family. Each parses, calls the library and prints."""
