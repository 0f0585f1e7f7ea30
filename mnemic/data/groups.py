"""Number groups of items that are linked, so that what belongs together stays together."""

from collections.abc import Hashable, Iterable, Sequence


def number_groups(keys: Iterable[Sequence[Hashable]]) -> list[int]:
    """Number the groups of items; items that share a key are in one group.

    >>> number_groups([["a"], ["b", "c"], ["d"], ["a", "c"]])
    [0, 0, 1, 0]
    """
    parents: dict[Hashable, Hashable] = {}

    def find_root(key: Hashable) -> Hashable:
        while parents.setdefault(key, key) != key:
            parents[key] = parents[parents[key]]
            key = parents[key]
        return key

    first_keys: list[Hashable] = []
    for item_keys in keys:
        first_keys.append(item_keys[0])
        for key in item_keys[1:]:
            parents[find_root(key)] = find_root(item_keys[0])
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(find_root(key), len(numbers)) for key in first_keys]
