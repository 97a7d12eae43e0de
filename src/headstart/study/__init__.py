"""Studies: arms × label budgets × seeds, compared with confidence intervals."""
