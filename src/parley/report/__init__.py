"""Several runs beside each other, and one page to show them."""
