"""HTTP service: a run answers requests, batched, bounded and watched.

`headstart.serve.model.ServedModel` needs no server: it opens any run and answers as plain dicts.
"""
