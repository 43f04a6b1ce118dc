"""Items, response models, priors, theoretical bounds and metrics."""
