"""The text files of the folder that are not UTF-8."""

ENCODINGS = {"letters/ole-birthday.txt": "latin-1", "letters/will.txt": "utf-16", "letters/shufa.txt": "gb18030"}
