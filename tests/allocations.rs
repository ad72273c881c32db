//! Steps allocate nothing. The allocator counts per thread, because the thread that waits for a test also allocates.
#![allow(unsafe_code, reason = "a global allocator that counts")]

use flowline::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        BYTES.set(BYTES.get() + layout.size());
        // SAFETY: as the caller guarantees.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller guarantees.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn lorenz(y: &[f64], dy: &mut [f64]) {
    dy[0] = 10.0 * (y[1] - y[0]);
    dy[1] = y[0] * (28.0 - y[2]) - y[1];
    dy[2] = y[0] * y[1] - 8.0 / 3.0 * y[2];
}

/// The number of allocations in `f`, and its result.
fn counted<T>(f: impl FnOnce() -> T) -> (usize, T) {
    let before = ALLOCATIONS.get();
    let out = f();
    (ALLOCATIONS.get() - before, out)
}

#[test]
fn steps_allocate_nothing_whatever_the_state_and_the_method() {
    for method in Method::ALL.into_iter().filter(|method| method.tableau().b_err.is_some()) {
        let arrays = Ode::new(|_t, y: &[f64; 3]| {
            let mut dy = [0.0; 3];
            lorenz(y, &mut dy);
            dy
        });
        let arrays = arrays.method(method).max_steps(1_000_000);
        let mut steps = arrays.stepper(0.0, 20.0, [1.0; 3]).unwrap();
        steps.step().unwrap();
        let (allocations, count) = counted(|| {
            let mut count = 0;
            while steps.step().unwrap().is_some() {
                count += 1;
            }
            count
        });
        assert!(count > 100, "{method}: {count} steps");
        assert_eq!(allocations, 0, "{method} on arrays, {count} steps");

        let heap = Ode::in_place(|_t, y: &[f64], dy: &mut [f64]| lorenz(y, dy)).method(method);
        let heap = heap.max_steps(1_000_000);
        let mut steps = heap.stepper(0.0, 20.0, vec![1.0; 3]).unwrap();
        steps.step().unwrap();
        let (allocations, ()) = counted(|| while steps.step().unwrap().is_some() {});
        assert_eq!(allocations, 0, "{method} on vectors");
    }

    // A whole solve stores the accepted times in one list that doubles when it is full; nothing else grows.
    let ode = Ode::in_place(|_t, y: &[f64], dy: &mut [f64]| lorenz(y, dy));
    let solve = |t1: f64| counted(|| ode.solve(0.0, t1, vec![1.0; 3]).unwrap().stats.num_accepted);
    // Both are long enough for the first stiffness check, which stores copies of the stages.
    let ((short, few), (long, many)) = (solve(20.0), solve(400.0));
    let doublings = (many as f64 / few as f64).log2().ceil() as usize;
    assert!(long <= short + doublings + 1, "{short} allocations in {few} steps, {long} in {many}");
}

/// The bytes that a solve allocates between its second and its last but one reset, of `num_resets` in all, with
/// `num_stops` stops spread over the interval.
fn bytes_of_resets(num_stops: usize, num_resets: usize, direction: f64, discontinuous: bool) -> usize {
    let end = direction * num_resets as f64;
    let stops: Vec<f64> = (1..=num_stops).map(|i| end * i as f64 / (num_stops as f64 + 0.5)).collect();
    let bounds = std::sync::Mutex::new((0, 0, 0));
    let ode = Ode::new(|_t, y: &[f64; 1]| [-y[0]]).max_steps(10_000_000).on_event(
        Event::rising(),
        move |t, _y| (std::f64::consts::PI * (t * direction - 0.5)).sin(),
        |_t, y| {
            y[0] += 1.0;
            let mut bounds = bounds.lock().unwrap();
            bounds.0 += 1;
            match bounds.0 {
                2 => bounds.1 = BYTES.get(),
                n if n + 1 == num_resets / 2 => bounds.2 = BYTES.get(),
                _ => {}
            }
        },
    );
    let ode = if discontinuous { ode.discontinuities(&stops) } else { ode.tstops(&stops) };
    let solution = ode.solve(0.0, end, [1.0]).unwrap();
    assert_eq!(solution.events.len(), num_resets / 2);
    assert!(solution.step_times.len() > num_stops, "a step ends at each stop");
    let (_, first, last) = *bounds.lock().unwrap();
    last - first
}

/// A reset searches the stops, and neither copies nor sorts them.
#[test]
fn a_reset_allocates_nothing_that_grows_with_the_number_of_stops() {
    for direction in [1.0, -1.0] {
        for discontinuous in [false, true] {
            let few = bytes_of_resets(40, 40, direction, discontinuous);
            let many = bytes_of_resets(20_000, 40, direction, discontinuous);
            // The step times take 8 bytes each, in a list that doubles when it is full.
            let step_times = 8 * 4 * 25_000;
            assert!(many < few + step_times, "{few} bytes with 40 stops, {many} with 20,000");
        }
    }
}
