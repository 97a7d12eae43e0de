"""What a trained run can do: write, fill, judge and answer."""
