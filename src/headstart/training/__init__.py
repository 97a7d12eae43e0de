"""One loop for pretraining and fine-tuning: precision, optimizer, schedule, checkpoints, resume."""
