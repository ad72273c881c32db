//! The rules of loops and tiles.
