//! Strip kernels against naive twins.
