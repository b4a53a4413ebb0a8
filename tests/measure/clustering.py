"""How the published Delta tables are scored: nearest neighbours and k-medoids, written here from their definitions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def nearest_neighbour_accuracy(distances: Array, authors: Sequence[str]) -> float:
    """Percentage of texts whose nearest other text is by the same author."""
    others = distances + np.diag(np.full(len(authors), np.inf))
    return float(100 * np.mean([authors[near] == authors[text] for text, near in enumerate(others.argmin(axis=1))]))


def medoid_clusters(distances: Array, count: int) -> list[int]:
    """Partitioning around medoids (Kaufman and Rousseeuw 1990, ch. 2): BUILD, then the best SWAP while one helps."""
    medoids: list[int] = [int(distances.sum(axis=1).argmin())]
    while len(medoids) < count:
        nearest = distances[:, medoids].min(axis=1)
        gains = np.maximum(nearest[:, None] - distances, 0).sum(axis=0)
        gains[medoids] = -1
        medoids.append(int(gains.argmax()))
    cost = distances[:, medoids].min(axis=1).sum()
    while True:
        trials = [
            (distances[:, [*kept, new]].min(axis=1).sum(), place, new)
            for place in range(count)
            for kept in [medoids[:place] + medoids[place + 1 :]]
            for new in set(range(len(distances))) - set(medoids)
        ]
        best, place, new = min(trials)
        if best >= cost - 1e-12:
            return [int(one) for one in distances[:, medoids].argmin(axis=1)]
        cost, medoids[place] = best, new
