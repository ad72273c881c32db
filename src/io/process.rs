//! Memory use of this process, from Linux's `/proc`; 0 or `None` on other systems.
//!
//! A crate would add system libraries for three numbers. `statm` counts pages; the page size is in the process's auxiliary
//! vector (`getauxval(3)`). Both are plain files, so no `unsafe` is needed.

use std::fs;
use std::sync::OnceLock;

const AT_PAGESZ: u64 = 6;
const MB: f64 = 1e6;

/// Resident memory, in MB of 10^6 bytes.
pub fn rss_mb() -> f64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_ascii_whitespace().nth(1).and_then(|s| s.parse::<f64>().ok());
    pages.unwrap_or(0.0) * page_bytes() / MB
}

/// Peak resident memory, in MB of 10^6 bytes.
pub fn peak_rss_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|l| l.split_ascii_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) * 1024.0 / MB
}

/// Bytes still available to this process: free memory or, if less, what remains of the limit of its control
/// group. `None` if the system reports neither.
pub fn free_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let machine =
        line.and_then(|l| l.split_ascii_whitespace().next()?.parse::<u64>().ok()).map(|kib| kib * 1024);
    let number = |name: &str| {
        let text = fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let group = number("memory.max").map(|max| max.saturating_sub(number("memory.current").unwrap_or(0)));
    machine.into_iter().chain(group).min()
}

fn page_bytes() -> f64 {
    static BYTES: OnceLock<f64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let auxv = fs::read("/proc/self/auxv").unwrap_or_default();
        let (words, _) = auxv.as_chunks::<{ size_of::<usize>() }>();
        let words: Vec<u64> = words.iter().map(|&w| usize::from_ne_bytes(w) as u64).collect();
        words.chunks_exact(2).find(|pair| pair[0] == AT_PAGESZ).map_or(4096.0, |pair| pair[1] as f64)
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn touched_memory_is_counted() {
        // Concurrent tests may free memory meanwhile, so the test tries several times.
        let is_seen = || {
            let before = rss_mb();
            let block = std::hint::black_box(vec![1u8; 64 << 20]);
            rss_mb() - before > 50.0 && block.len() == 64 << 20
        };
        assert!((0..20).any(|_| is_seen()));
        assert!(peak_rss_mb() >= rss_mb() - 1.0);
        assert!(free_bytes().is_some_and(|free| free > 1 << 20));
    }
}
