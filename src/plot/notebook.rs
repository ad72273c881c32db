//! Figures below a notebook cell.
//!
//! The Rust kernel for Jupyter (evcxr) finds a figure by markers in the output of a cell. Apart from the command line, only
//! this module prints, and only with the feature `evcxr`.
use super::Figure;
use base64::{Engine, engine::general_purpose::STANDARD};

impl Figure {
    /// Shows the figure below the cell. The kernel calls this for a figure that is the last expression of a cell; call it
    /// yourself to show several.
    ///
    /// # Panics
    /// If the figure cannot be encoded, because it has no pixels.
    pub fn evcxr_display(&self) {
        let bytes = self.to_png_bytes().unwrap_or_else(|e| panic!("a figure for a notebook: {e}"));
        println!("EVCXR_BEGIN_CONTENT image/png\n{}\nEVCXR_END_CONTENT", STANDARD.encode(bytes));
    }
}
