"""Sizes that are tied to each other: union-find, with sizes that are products of others.

Each dimension of each value is an atom at first. Atoms are united where an operation wants two sizes to be equal, and
split where it wants one to be the product of others (a reshape of 4x256 to 1024). What is left at the ends may be
chosen freely.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Atoms:
    """Atoms by number; `size` of a leaf is what it is now."""

    def __init__(self) -> None:
        self._parent: list[int] = []
        self._parts: list[tuple[int, ...] | None] = []
        self.sizes: list[int] = []
        self._pinned: list[bool] = []

    def new(self, size: int) -> int:
        """A new atom. One of size 1 is as small as it can be."""
        self._parent.append(len(self._parent))
        self._parts.append(None)
        self.sizes.append(size)
        self._pinned.append(size <= 1)
        return len(self._parent) - 1

    def _root(self, atom: int) -> int:
        while self._parent[atom] != atom:
            self._parent[atom] = atom = self._parent[self._parent[atom]]
        return atom

    def leaves(self, *atoms: int) -> list[int]:
        """What the product of some atoms consists of, sizes of 1 left out."""
        found: list[int] = []
        for atom in atoms:
            root = self._root(atom)
            parts = self._parts[root]
            if parts is not None:
                found.extend(self.leaves(*parts))
            elif self.sizes[root] != 1:
                found.append(root)
        return found

    def pin(self, *atoms: int) -> None:
        """Nothing of these may change."""
        for leaf in self.leaves(*atoms):
            self._pinned[leaf] = True

    def pinned(self, leaf: int) -> bool:
        """True if a leaf may not change."""
        return self._pinned[leaf]

    def equal(self, one: Sequence[int], other: Sequence[int]) -> None:
        """The products of these two lists are the same, in this order of factors."""
        left, right = self.leaves(*one)[::-1], self.leaves(*other)[::-1]
        while left and right:
            a, b = self._root(left.pop()), self._root(right.pop())
            if a == b:
                continue
            if self._parts[a] is not None or self._parts[b] is not None:  # split a moment ago, as a factor met twice
                left.extend(self.leaves(a)[::-1])
                right.extend(self.leaves(b)[::-1])
                continue
            small, large, rest = (a, b, right) if self.sizes[a] <= self.sizes[b] else (b, a, left)
            if self.sizes[small] == self.sizes[large]:
                self._parent[large] = small
                self._pinned[small] |= self._pinned[large]
            elif self.sizes[large] % self.sizes[small]:
                self.pin(a, b, *left, *right)
                return
            else:
                other_part = self.new(self.sizes[large] // self.sizes[small])
                self._parts[large] = (small, other_part)
                if self._pinned[large]:
                    self._pinned[small] = self._pinned[other_part] = True
                rest.append(other_part)
        self.pin(*left, *right)

    def same(self, one: Iterable[int], other: Iterable[int]) -> None:
        """Equal shapes, dimension by dimension."""
        for a, b in zip(one, other, strict=True):
            self.equal((a,), (b,))

    def product(self, atom: int, chosen: dict[int, int]) -> int:
        """The size of an atom when leaves have the sizes `chosen`."""
        size = 1
        for leaf in self.leaves(atom):
            size *= chosen.get(leaf, self.sizes[leaf])
        return size
