"""The tools that Headstart is compared with, in the short form in which people use them."""
