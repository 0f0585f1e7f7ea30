"""Detect Chinese characters and Chinese texts."""

import re

# The ideographs that BERT sets apart (Devlin et al. 2019), those Unicode added since, and 〇.
HAN = "\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

IDEOGRAPH = re.compile(f"[{HAN}]")


def han_fraction(text: str) -> float:
    """Return the fraction of a text's letters and digits that are Chinese characters.

    0.0 for a text without letters and digits.
    """
    letters = sum(map(str.isalnum, text))
    return len(IDEOGRAPH.findall(text)) / letters if letters else 0.0
