//! SIGINT and SIGTERM while a run trains: it saves, says so, and ends as the signal would have ended it.
//!
//! A handler may do next to nothing, so it leaves the signal's number and the run asks for it between updates. The same
//! signal a second time ends the process at once.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The signal that came, as long as this is there.
pub struct Signals {
    came: Arc<AtomicUsize>,
}

impl Signals {
    /// From now on they are noted.
    ///
    /// # Errors
    /// What the system says where a handler cannot be set.
    pub fn watch() -> io::Result<Signals> {
        let came = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM] {
            let again = Arc::new(AtomicBool::new(false));
            // In this order: the first signal finds the flag unset.
            flag::register_conditional_default(signal, again.clone())?;
            flag::register(signal, again)?;
            flag::register_usize(signal, came.clone(), signal as usize)?;
        }
        Ok(Signals { came })
    }

    /// Whether one came.
    pub fn is_requested(&self) -> bool {
        self.came.load(Ordering::Relaxed) != 0
    }

    /// Ends the process as the signal that came does by default; whoever waits for it sees which.
    pub fn end(&self) {
        let _ = low_level::emulate_default_handler(self.came.load(Ordering::Relaxed) as i32);
    }
}
