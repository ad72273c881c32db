//! Figures under the cell of a notebook that made them.
//!
//! Knows the words by which the Rust kernel for Jupyter (evcxr) takes a figure out of what a cell prints, and nothing of
//! notebooks else. They are the one thing printed outside of the command line, by who asks for it and behind the feature
//! `evcxr`.
use super::Figure;
use base64::{Engine, engine::general_purpose::STANDARD};

impl Figure {
    /// Shows the figure under the cell: the kernel calls this for a figure that is a cell's last expression, and a cell may
    /// call it for each of several.
    ///
    /// # Panics
    /// Where the figure cannot be encoded: it has no pixel.
    pub fn evcxr_display(&self) {
        let bytes = self.to_png_bytes().unwrap_or_else(|e| panic!("a figure for a notebook: {e}"));
        println!("EVCXR_BEGIN_CONTENT image/png\n{}\nEVCXR_END_CONTENT", STANDARD.encode(bytes));
    }
}
