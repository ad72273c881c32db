//! SIGINT and SIGTERM during training: the run saves a checkpoint, reports it, and ends by the signal.
//!
//! A signal handler may do very little, so it only stores the signal's number. The run reads this number between
//! updates. A second signal ends the process at once.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The last signal received.
pub struct Signals {
    came: Arc<AtomicUsize>,
}

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub fn watch() -> io::Result<Signals> {
        let came = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM] {
            let again = Arc::new(AtomicBool::new(false));
            // In this order, because the first signal must find the flag unset.
            flag::register_conditional_default(signal, again.clone())?;
            flag::register(signal, again)?;
            flag::register_usize(signal, came.clone(), signal as usize)?;
        }
        Ok(Signals { came })
    }

    /// Whether a signal was received.
    pub fn is_requested(&self) -> bool {
        self.came.load(Ordering::Relaxed) != 0
    }

    /// Ends the process by the default action of the signal, so that the parent process sees which signal ended
    /// it.
    pub fn end(&self) {
        let _ = low_level::emulate_default_handler(self.came.load(Ordering::Relaxed) as i32);
    }
}
