"""The command line: one small file a command, each command a typed function.

Library modules are imported inside the commands, so that help appears without loading torch.
"""
