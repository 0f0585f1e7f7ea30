"""Which characters are Chinese, and which texts."""

import re

# The ideographs that BERT sets apart (Devlin et al. 2019), those Unicode added since, and 〇.
HAN = "\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

_IDEOGRAPH = re.compile(f"[{HAN}]")


def share_of_han(text: str) -> float:
    """How much of ``text`` is Chinese: the share among its letters and digits, 0.0 without any."""
    letters = sum(map(str.isalnum, text))
    return len(_IDEOGRAPH.findall(text)) / letters if letters else 0.0
