//! Runs a body per tile of rows, in parallel on rayon's current pool.
//!
//! The program determines the tiles, rows are written to their final place, and sums are stored per tile and
//! added in tile order. The bits of the results therefore do not depend on scheduling. Each worker owns a
//! workspace. Workers take tiles from a counter. Recursive joins start the workers, because spawned tasks
//! would allocate.

use super::exec::{Workspace, execute};
use crate::backend::cpu::address::{Address, Bound, Env};
use crate::backend::cpu::kernels::StripFn;
use crate::backend::cpu::plan::{INPUTS, Plan};
use crate::simd::denormals::Denormals;
use std::ptr::null;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A summation task with more additions than this, over more than 512 elements, is split. Scheduling a
/// smaller task takes longer than its additions.
const SUM_GRAIN: usize = 1 << 14;

/// The tiles of an operation.
#[derive(Debug)]
pub(crate) struct Tiles {
    pub body: Plan,
    pub tail: Option<Plan>,
    /// First row of each tile.
    pub row0: Box<[u32]>,
    /// The order in which workers take the full tiles, if a test draws it.
    #[cfg(test)]
    pub order: Box<[usize]>,
    /// Rows per tile.
    pub rows: usize,
    /// Inputs that are split by rows: location, and bytes per row.
    pub rowed: Box<[(Address, usize)]>,
    pub shared: Box<[Address]>,
    pub outs: Box<[Out]>,
    pub space: usize,
}

/// An output of the tiles.
#[derive(Debug)]
pub(crate) enum Out {
    /// Consecutive rows of this many bytes.
    Rows { at: Address, row: usize },
    /// A sum over the tiles. Tile 0 writes its term to `at`, the others write theirs to `parts`, `stride`
    /// bytes apart.
    Sum { at: Address, parts: Address, stride: usize, add: StripFn, len: usize, elem: usize },
}

/// The workspaces of the workers.
#[derive(Default)]
pub(crate) struct TileSpace {
    pub workers: Vec<Workspace>,
    pub tail: Workspace,
}

/// The addresses of the surrounding run, for the workers.
#[derive(Clone, Copy)]
struct Shared<'a> {
    tiles: &'a Tiles,
    env: Env,
    next: &'a AtomicUsize,
}

// SAFETY: workers read shared inputs and write rows and parts of their own tiles only; the addresses
// stay valid until all have returned.
unsafe impl Send for Shared<'_> {}
// SAFETY: as above.
unsafe impl Sync for Shared<'_> {}

impl Tiles {
    /// Runs all tiles and adds their sums.
    pub fn run(&self, env: Env, space: &mut TileSpace) {
        let num = self.row0.len();
        if num == 0 {
            return self.clear(env);
        }
        let whole = num - usize::from(self.tail.is_some());
        let workers = rayon::current_num_threads().min(whole).max(1);
        if space.workers.len() < workers {
            space.workers.resize_with(workers, Workspace::new);
        }
        // All workspaces are prepared now. The load of the machine determines which workers take tiles, so a
        // later run could otherwise allocate.
        space.workers[..workers].iter_mut().for_each(|ws| ws.prepare(&self.body));
        let next = AtomicUsize::new(0);
        let shared = Shared { tiles: self, env, next: &next };
        let tail = self.tail.as_ref().map(|plan| (plan, &mut space.tail));
        // A waiting thread may run other tasks, which expect standard denormals.
        let _mode = Denormals::kept();
        work(shared, &mut space.workers[..workers], tail);
        for out in &self.outs {
            if let Out::Sum { at, parts, stride, add, len, elem } = *out {
                let sum = Parts { to: env.at(at), from: env.at(parts), stride, num: num - 1, add, elem };
                // SAFETY: all tiles have been run. `Tiles::each_span` gives the sum and the parts, which do not
                // overlap.
                unsafe { sum.run(0, len) };
            }
        }
    }

    fn clear(&self, env: Env) {
        for out in &self.outs {
            if let Out::Sum { at, len, elem, .. } = *out {
                env.bound(at).zero(len * elem);
            }
        }
    }

    /// Runs tile `i` with the plan of its size.
    fn tile(&self, i: usize, plan: &Plan, ws: &mut Workspace, env: Env) {
        let row = i * self.rows;
        ws.prepare(plan);
        let input = |k: usize| INPUTS as usize + k;
        let first_shared = 1 + self.rowed.len();
        ws.bases[input(0)] = Bound::of(&self.row0[i]);
        for (k, (at, bytes)) in self.rowed.iter().enumerate() {
            ws.bases[input(1 + k)] = env.bound(*at).from(row * bytes);
        }
        for (k, at) in self.shared.iter().enumerate() {
            ws.bases[input(first_shared + k)] = env.bound(*at);
        }
        let first = plan.0.first_output();
        for (k, out) in self.outs.iter().enumerate() {
            ws.bases[first + k] = match *out {
                Out::Rows { at, row: bytes } => env.bound(at).from(row * bytes),
                Out::Sum { at, .. } if i == 0 => env.bound(at),
                Out::Sum { parts, stride, .. } => env.bound(parts).from((i - 1) * stride),
            };
        }
        // SAFETY: all inputs and outputs are bound. `Tiles::each_span` gives the bytes of all tiles, which
        // `check_plan` has checked, and the tiles write disjoint rows and parts.
        unsafe { execute(&plan.0, ws) };
    }
}

/// Splits the workers until each runs alone. Each worker then takes tiles until none is left. The first
/// worker runs the tail first.
fn work(shared: Shared<'_>, workers: &mut [Workspace], tail: Option<(&Plan, &mut Workspace)>) {
    let tiles = shared.tiles;
    if let [ws] = workers {
        let whole = tiles.row0.len() - usize::from(tiles.tail.is_some());
        let _mode = Denormals::flushed();
        if let Some((plan, ws)) = tail {
            tiles.tile(whole, plan, ws, shared.env);
        }
        // `Tiles::run` has prepared the workspace, so this call does nothing.
        ws.prepare(&tiles.body);
        // The counter gives each tile to one worker.
        loop {
            let i = shared.next.fetch_add(1, Relaxed);
            if i >= whole {
                return;
            }
            #[cfg(test)]
            let i = tiles.order[i];
            tiles.tile(i, &tiles.body, ws, shared.env);
        }
    }
    let (left, right) = workers.split_at_mut(workers.len() / 2);
    rayon::join(|| work(shared, left, tail), || work(shared, right, None));
}

/// The sum over the tiles, in tile order for each element.
#[derive(Clone, Copy)]
struct Parts {
    to: *mut u8,
    from: *mut u8,
    stride: usize,
    num: usize,
    add: StripFn,
    elem: usize,
}

// SAFETY: tasks work on disjoint ranges of elements.
unsafe impl Send for Parts {}
// SAFETY: as above.
unsafe impl Sync for Parts {}

impl Parts {
    unsafe fn run(self, start: usize, len: usize) {
        if len * self.num > SUM_GRAIN && len > 512 {
            let half = len / 2;
            let whole = self;
            let left = move || {
                // SAFETY: the first half of the range.
                unsafe { whole.run(start, half) }
            };
            let right = move || {
                // SAFETY: the other half.
                unsafe { whole.run(start + half, len - half) }
            };
            rayon::join(left, right);
            return;
        }
        let _mode = Denormals::flushed();
        for part in 0..self.num {
            // SAFETY: the range lies inside all buffers; the sum is read and written at one address.
            unsafe {
                let to = self.to.add(start * self.elem);
                let from = self.from.add(part * self.stride + start * self.elem);
                (self.add)(to, to, from, null(), [0.0; 2], len);
            }
        }
    }
}
