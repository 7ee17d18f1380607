"""Reports on several runs: comparisons, and one page to show them."""
