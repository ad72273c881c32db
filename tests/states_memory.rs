//! Steps of compound states and of states from other crates allocate nothing. The allocator counts per thread.
//! Arrays and vectors are tested in `allocations`.
#![allow(unsafe_code, reason = "a global allocator that counts")]

use flowline::ode::{Method, Ode, PlainState, VectorField};
use flowline::state;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    /// Counts of this thread alone, because the test harness may allocate at any time.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
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

state! { struct Oscillator { x: f64, v: Vec<f64> } }

/// The number of allocations in all steps after the first.
fn allocations<Y: PlainState, F: VectorField<Y>>(ode: &Ode<'_, Y, F>, y0: Y) -> usize {
    let mut steps = ode.stepper(0.0, 100.0, y0).unwrap();
    steps.step().unwrap().unwrap();
    let before = ALLOCATIONS.get();
    let mut count = 0;
    while steps.step().unwrap().is_some() {
        count += 1;
    }
    let after = ALLOCATIONS.get();
    assert!(count > 50, "{count} steps");
    after - before
}

const METHODS: [Method; 3] = [Method::Tsit5, Method::Dop853, Method::Bosh3];

#[test]
fn steps_of_compounds_allocate_nothing() {
    for method in METHODS {
        let pair = |_t: f64, y: &(f64, Vec<f64>), dy: &mut (f64, Vec<f64>)| (dy.0, dy.1[0]) = (y.1[0], -y.0);
        assert_eq!(allocations(&Ode::in_place(pair).method(method), (1.0, vec![0.0])), 0, "{method}");
        let named = |_t: f64, y: &Oscillator, dy: &mut Oscillator| (dy.x, dy.v[0]) = (y.v[0], -y.x);
        let y0 = Oscillator { x: 1.0, v: vec![0.0] };
        assert_eq!(allocations(&Ode::in_place(named).method(method), y0), 0, "{method}");
    }
}

#[cfg(feature = "nalgebra")]
#[test]
fn steps_of_nalgebras_states_allocate_nothing() {
    use nalgebra::{DMatrix, DVector, Vector2};
    for method in METHODS {
        let fixed = Ode::new(|_t, y: &Vector2<f64>| Vector2::new(y[1], -y[0])).method(method);
        assert_eq!(allocations(&fixed, Vector2::new(1.0, 0.0)), 0, "{method}");
        let vector =
            Ode::in_place(|_t, y: &DVector<f64>, dy: &mut DVector<f64>| [dy[0], dy[1]] = [y[1], -y[0]]);
        assert_eq!(allocations(&vector.method(method), DVector::from_vec(vec![1.0, 0.0])), 0, "{method}");
        let matrix =
            Ode::in_place(|_t, y: &DMatrix<f64>, dy: &mut DMatrix<f64>| [dy[0], dy[1]] = [y[1], -y[0]]);
        let y0 = DMatrix::from_row_slice(1, 2, &[1.0, 0.0]);
        assert_eq!(allocations(&matrix.method(method), y0), 0, "{method}");
    }
}

#[cfg(feature = "ndarray")]
#[test]
fn steps_of_ndarrays_states_allocate_nothing() {
    use ndarray::{Array1, Array2, ArrayRef1, ShapeBuilder, array};
    for method in METHODS {
        let view = |_t: f64, y: &ArrayRef1<f64>, dy: &mut ArrayRef1<f64>| [dy[0], dy[1]] = [y[1], -y[0]];
        assert_eq!(allocations(&Ode::in_place(view).method(method), array![1.0, 0.0]), 0, "{method}");
        let whole = |_t: f64, y: &Array1<f64>, dy: &mut Array1<f64>| [dy[0], dy[1]] = [y[1], -y[0]];
        assert_eq!(allocations(&Ode::in_place(whole).method(method), array![1.0, 0.0]), 0, "{method}");
        let rows = |_t: f64, y: &Array2<f64>, dy: &mut Array2<f64>| {
            dy.row_mut(0).assign(&y.row(1));
            dy.row_mut(1).assign(&y.row(0));
            dy.row_mut(1).map_inplace(|dy| *dy = -*dy);
        };
        let by_columns = Array2::from_elem((2, 3).f(), 1.0);
        assert!(!by_columns.is_standard_layout());
        assert_eq!(allocations(&Ode::in_place(rows).method(method), by_columns), 0, "{method}");
    }
}
