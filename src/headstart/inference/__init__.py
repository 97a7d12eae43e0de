"""What a trained run can do: predict, evaluate, explain, generate and fill gaps."""
