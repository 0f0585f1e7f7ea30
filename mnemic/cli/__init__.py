"""The command line: one small file per command, and each command is a typed function.

Commands import library modules inside their bodies, so that help appears without loading torch.
"""
