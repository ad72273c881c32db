//! Signals during training: the run saves a checkpoint, reports it, and ends by the signal.
//!
//! A signal handler may do very little, so it only stores the signal's number. The run reads this number between
//! updates. A second SIGINT or SIGTERM ends the process at once. The other signals often come twice without such a
//! wish: a closed terminal sends SIGHUP by the shell and by the kernel, and SIGXCPU comes every second.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::ffi::c_int;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The signals of which a second one ends the process at once.
const ASKED: [c_int; 2] = [SIGINT, SIGTERM];

/// The other signals that end a run.
#[cfg(unix)]
fn others() -> Vec<c_int> {
    use signal_hook::consts::{SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};
    // `nohup` has the process ignore SIGHUP.
    let is_wanted = |&signal: &c_int| signal != SIGHUP || !is_ignored(SIGHUP);
    [SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU].into_iter().filter(is_wanted).collect()
}

#[cfg(not(unix))]
fn others() -> Vec<c_int> {
    Vec::new()
}

/// Whether this process was started with a signal ignored. Without `/proc`, true if standard error is no terminal: this
/// is how `nohup` leaves it.
#[cfg(unix)]
fn is_ignored(signal: c_int) -> bool {
    use std::io::IsTerminal;
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| ignored_in(&status, signal))
        .unwrap_or_else(|| !io::stderr().is_terminal())
}

/// Whether the mask of ignored signals in a status of Linux contains a signal.
#[cfg(unix)]
fn ignored_in(status: &str, signal: c_int) -> Option<bool> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    Some(u64::from_str_radix(mask.trim(), 16).ok()? >> (signal - 1) & 1 == 1)
}

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
        for signal in ASKED {
            let again = Arc::new(AtomicBool::new(false));
            // In this order, because the first signal must find the flag unset.
            flag::register_conditional_default(signal, again.clone())?;
            flag::register(signal, again)?;
        }
        for signal in ASKED.into_iter().chain(others()) {
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
        let _ = low_level::emulate_default_handler(self.came.load(Ordering::Relaxed) as c_int);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read_bit_by_bit() {
        for signal in 1..=64 {
            let status = format!("Name:\tflowline\nSigBlk:\tffff\nSigIgn:\t{:016x}\n", 1_u64 << (signal - 1));
            for other in 1..=64 {
                assert_eq!(ignored_in(&status, other), Some(other == signal), "{status}");
            }
        }
        assert_eq!(ignored_in("SigBlk:\t0\n", 1), None);
        assert_eq!(ignored_in("SigIgn:\txyz\n", 1), None);
    }
}
