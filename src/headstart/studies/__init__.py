"""Studies: arms × seeds × label budgets on one dataset, their statistics and their report."""
