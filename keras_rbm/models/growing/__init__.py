"""RBMs whose hidden layer grows."""
