"""What KIEval's paper prints, as data: accuracies, KIEval scores, correlations."""

from parley.statistics.contamination import ModelPoint

# Table 2: accuracy and KIEval score.
MODELS = ["GPT-3.5", "LLaMA2 70B", "LLaMA2 13B", "LLaMA2 7B", "Mistral 7B", "Yi 6B", "MPT 7B"]
TABLE_2 = {
    "ARC-E": (
        [92.7, 92.3, 81.9, 73.6, 83.5, 90.7, 53.3],
        [97.6, 90.7, 86.2, 78.9, 80.8, 83.8, 68.4],
    ),
    "ARC-C": (
        [82.3, 80.4, 65.7, 55.7, 67.5, 79.0, 43.4],
        [95.5, 84.1, 78.6, 74.4, 78.5, 76.8, 65.5],
    ),
    "MMLU": (
        [58.2, 61.8, 52.1, 44.5, 52.7, 61.9, 33.9],
        [96.2, 89.6, 87.4, 83.0, 83.0, 86.5, 74.7],
    ),
    "HellaSwag": (
        [76.6, 74.4, 59.3, 39.8, 54.4, 73.7, 27.3],
        [88.2, 80.1, 78.5, 76.4, 70.3, 68.7, 57.3],
    ),
    "C-Eval": (
        [50.8, 42.0, 37.8, 33.4, 39.3, 71.5, 26.2],
        [83.3, 61.0, 54.4, 49.3, 52.2, 55.6, 44.9],
    ),
}
# Table 3: two models trained on test sets, and one of the same base that was not.
TABLE_3 = {
    "ARC-C": {
        "PT-Cheater": (86.54, 52.13),
        "SFT-Cheater": (77.65, 58.46),
        "Normal": (52.35, 62.60),
    },
    "MMLU": {"PT-Cheater": (72.52, 51.82), "SFT-Cheater": (61.60, 72.74), "Normal": (42.69, 76.02)},
}
# Table 4, on ARC-C: trained on MT-Bench's prompts.
TABLE_4 = {"Normal": (52.35, 62.60), "+MT-Bench": (52.25, 57.46)}
# Table 5: r and p of all models, r and p without Yi 6B.
TABLE_5 = {
    "Overall": (0.664, 1.37e-5, 0.765, 8.67e-7),
    "ARC-E": (0.892, 6.97e-3, 0.934, 6.45e-3),
    "ARC-C": (0.839, 1.83e-2, 0.940, 5.29e-3),
    "MMLU": (0.814, 2.57e-2, 0.876, 2.21e-2),
    "HellaSwag": (0.686, 8.85e-2, 0.862, 2.74e-2),
    "C-Eval": (0.427, 3.40e-1, 0.924, 8.42e-3),
}


def points(cheaters=False):
    """Table 2 as points, with those of table 3 if wanted."""
    found = [
        ModelPoint(model, name, x, y)
        for name, sides in TABLE_2.items()
        for model, x, y in zip(MODELS, *sides, strict=True)
    ]
    if cheaters:
        found += [
            ModelPoint(model, name, *place)
            for name, models in TABLE_3.items()
            for model, place in models.items()
        ]
    return found
