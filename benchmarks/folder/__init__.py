"""The files and questions of ``real_folder.py``, and the rules that judge its answers."""
