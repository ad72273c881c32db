//! Accuracy of each function at each level on dense sweeps.
