//! 10,000 Lorenz trajectories over MPI: `mpirun -n 2 target/release/examples/ensemble_ranks`.
//!
//! Every rank has one thread, so two ranks can be compared with one process of two threads
//! (`RAYON_NUM_THREADS=2`, without `mpirun`). Prints the shortest time of ten solves in milliseconds, and a checksum
//! of the end states, which does not depend on the number of ranks.

use flowline::prelude::*;
use flowline::world::World;
use std::time::Instant;

vector_field! {
    struct Lorenz<R> { rho: R }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        [10.0 * (y[1] - y[0]), y[0] * (self.rho - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]]
    }
}

fn main() -> flowline::Result<()> {
    let world = World::mpi()?;
    let rhos: Vec<f64> = (0..10_000).map(|i| 28e-4 * f64::from(i)).collect();
    let sweep = ensemble(&rhos, |&rho| (Lorenz { rho }, [1.0; 3])).world(&world).rtol(1e-8).atol(1e-8);
    let mut least = f64::INFINITY;
    let mut sum = 0u64;
    for _ in 0..10 {
        let since = Instant::now();
        let found = sweep.solve(0.0, 10.0)?;
        least = least.min(since.elapsed().as_secs_f64() * 1e3);
        sum = found.y1.iter().flatten().fold(0, |sum, y| sum.rotate_left(1) ^ y.to_bits());
    }
    if world.is_root() {
        println!("{} rank(s): {least:.1} ms, {sum:016x}", world.size());
    }
    Ok(())
}
