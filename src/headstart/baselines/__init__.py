"""The arms without a Transformer, and the stack that joins them with one.

Each is a scikit-learn style classifier whose strength is chosen on the validation part.
"""
