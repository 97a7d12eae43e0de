"""Studies: arms × seeds × label budgets, and what they show."""
