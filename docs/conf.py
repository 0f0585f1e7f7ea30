"""Configuration of the documentation; ``live.py`` writes what comes from the code."""

import sys
from pathlib import Path

import mnemic

sys.path.insert(0, str(Path(__file__).parent))

project = "mnemic"
author = "the mnemic developers"
copyright = "the mnemic developers, Apache License 2.0"
version = release = mnemic.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "live"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "results"]

autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False  # of torch, whose forward explains how to write one
autodoc_typehints = "signature"
python_maximum_signature_line_length = 88

copybutton_prompt_text = r">>> |\.\.\. |\$ "  # is not copied, and neither is what is printed
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"mnemic {version}"
html_copy_source = False
html_show_sphinx = False
