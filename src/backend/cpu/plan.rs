//! The compiled form of a function: steps over one arena, immutable and shared by threads.

use super::address::{Address, Extent};
use super::memory::{ALIGN, Storage, aligned};
use super::report::{CompiledBody, StoringLoop, report};
use crate::array::{Array, DType};
use crate::backend::PlanReport;
use crate::backend::cpu::compile::buffers::{Buffer, Home};
use crate::backend::cpu::compile::check_plan::{self, Memory, Placed};
use crate::backend::cpu::compile::extents::{Span, Spans};
use crate::backend::cpu::compile::fuse::group;
use crate::backend::cpu::compile::lower::{Lowered, lower};
use crate::backend::cpu::compile::lower_loops::Spaces;
use crate::backend::cpu::compile::memory_plan::{Life, MemoryPlan, place};
use crate::backend::cpu::compile::prepare::prepare;
use crate::backend::cpu::compile::recompute::recompute;
use crate::backend::cpu::run::packed::Packed;
use crate::backend::cpu::run::step::Step;
use crate::backend::cpu::run::totals::{Ring, with_totals};
use crate::graph::{Func, Type, verify};
use crate::simd::Level;
use crate::transform::with_worthy_residuals;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Base of the arena.
pub(crate) const ARENA: u32 = 0;
/// Base of the pool of constants.
const POOL: u32 = 1;
/// Base of the first input.
pub(crate) const INPUTS: u32 = 2;

/// Properties shared by the trips of a loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trips {
    /// Inputs of the body that are the same in all trips.
    pub captured: Range<usize>,
    /// Outputs that are summed over the trips.
    pub sums: Range<usize>,
}

/// A compiled function.
///
/// Immutable, cheap to clone, and `Sync`: any number of threads may run one plan, each with its own
/// [`super::Workspace`]. A run makes no heap allocation if an earlier run of the plan on the same workspace
/// took at least as many steps; debug callbacks are an exception.
#[derive(Clone)]
pub struct Plan(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub steps: Vec<Step>,
    pub level: Level,
    pub inputs: Vec<Type>,
    pub outputs: Vec<Type>,
    /// Constant arrays of the graph; their bases follow those of the outputs.
    pub consts: Vec<Arc<Array>>,
    pub pool: Storage,
    /// Bytes of the arena.
    pub arena_bytes: usize,
    /// Bytes of registers, which follow the arena.
    pub scratch_bytes: usize,
    /// Length of the table of addresses.
    pub slots: usize,
    pub report: PlanReport,
    /// The loops and the bodies of the report.
    pub loops: Vec<StoringLoop>,
    pub bodies: Vec<CompiledBody>,
    /// The workspace data of loops and tiles.
    pub spaces: Spaces,
    /// Ring buffers of products that are deferred over several runs.
    pub rings: Vec<Ring>,
    /// Weights that are packed once for many runs.
    pub packed: Vec<Packed>,
    /// What the steps use, to check it again before each step.
    #[cfg(debug_assertions)]
    pub spans: Spans,
}

impl Plan {
    /// Compiles a function for an instruction set level.
    ///
    /// # Panics
    /// If `level` is above the one in use, or the function is not well formed ([`verify`]).
    pub fn compile(func: &Func, level: Level) -> Plan {
        if let Err(error) = verify(func) {
            panic!("cannot compile a function that is not well formed: {error}");
        }
        Plan::of_body(func, level, Trips::default())
    }

    /// Compiles the body of a loop. Its outputs in `sums` are added to the previous contents: the plan has an
    /// additional input for each, to be bound to the address of the output. The caller starts and finishes
    /// the sums and packs captured values, with the methods of [`Body`](crate::backend::cpu::run::bind::Body).
    pub(crate) fn of_body(func: &Func, level: Level, trips: Trips) -> Plan {
        assert!(level <= Level::detect(), "invariant: level {level:?} is not available");
        let mut laid = lay_out(func, level, trips);
        laid.check();
        laid.relocate();
        let Laid { func, lowered, memory, pool, consts, .. } = laid;
        let strips =
            || lowered.steps.iter().filter_map(|s| if let Step::Strip(p) = s { Some(p) } else { None });
        let scratch_bytes =
            strips().map(crate::backend::cpu::run::program::Program::scratch_bytes).max().unwrap_or(0);
        let slots = strips().map(|p| p.slots as usize).max().unwrap_or(0);
        let tapes = lowered.spaces.tapes.iter().map(|tape| (tape.state_bytes, tape.num));
        let tapes = tapes.chain(lowered.spaces.restorers.iter().copied()).collect();
        let residuals = lowered.spaces.tapes.iter().map(|tape| (tape.residual_bytes, tape.budget)).collect();
        let tapes = (tapes, residuals);
        let report = report(&lowered.steps, &memory, scratch_bytes, tapes, &lowered.loops, &lowered.bodies);
        Plan(Arc::new(Inner {
            steps: lowered.steps,
            level,
            inputs: func.input_types(),
            outputs: func.output_types(),
            consts,
            pool,
            arena_bytes: memory.bytes,
            scratch_bytes,
            slots,
            report,
            loops: lowered.loops,
            bodies: lowered.bodies,
            spaces: lowered.spaces,
            rings: lowered.rings,
            packed: lowered.packed,
            #[cfg(debug_assertions)]
            spans: laid.spans,
        }))
    }

    /// Types of the inputs.
    pub fn input_types(&self) -> &[Type] {
        &self.0.inputs
    }

    /// Types of the outputs.
    pub fn output_types(&self) -> &[Type] {
        &self.0.outputs
    }

    /// The cost and memory of the plan.
    pub fn report(&self) -> &PlanReport {
        &self.0.report
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.report, f)
    }
}

impl Inner {
    /// Number of bases of a run.
    pub fn num_bases(&self) -> usize {
        INPUTS as usize + self.inputs.len() + self.outputs.len() + self.consts.len()
    }

    /// Base of the first output.
    pub fn first_output(&self) -> usize {
        INPUTS as usize + self.inputs.len()
    }
}

/// The steps of a plan, and the places of its buffers.
pub(crate) struct Laid {
    pub func: Func,
    pub level: Level,
    pub lowered: Lowered,
    pub spans: Spans,
    pub memory: MemoryPlan,
    /// The base and the offset of each buffer.
    pub places: Vec<Address>,
    pub pool: Storage,
    pub consts: Vec<Arc<Array>>,
    /// Outputs that are sums over runs.
    pub sums: Range<usize>,
}

/// Lowers a function and assigns memory to its buffers.
pub(crate) fn lay_out(func: &Func, level: Level, trips: Trips) -> Laid {
    let sums = trips.sums.clone();
    let func = with_worthy_residuals(func);
    let func = match sums.is_empty() {
        true => prepare(&func),
        false => prepare(&with_totals(&func, sums.clone())),
    };
    let mut units = group(&func);
    recompute(&mut units, &func);
    let mut lowered = lower(&func, &units, level, trips);
    let spans = Spans::of(&mut lowered.steps, level);
    let memory = plan_memory(&lowered, &spans);
    let (places, pool, consts) = locate(&func, &lowered.buffers.list, &memory);
    Laid { func, level, lowered, spans, memory, places, pool, consts, sums }
}

impl Laid {
    /// # Panics
    /// If a step could read or write what it must not ([`check_plan`]).
    pub fn check(&mut self) {
        let Laid { func, level, lowered, spans, memory, places, pool, consts, sums } = self;
        let of = |ty: &Type| match ty {
            Type::Array { dtype, .. } => Memory { bytes: ty.bytes(), align: dtype.size() },
            _ => Memory { bytes: 0, align: 1 },
        };
        let own = [memory.bytes, pool.bytes()].map(|bytes| Memory { bytes, align: ALIGN });
        let types = func.input_types().into_iter().chain(func.output_types());
        let consts = consts.iter().map(|a| Memory { bytes: a.bytes(), align: a.dtype().size() });
        let bases: Vec<Memory> = own.into_iter().chain(types.map(|ty| of(&ty))).chain(consts).collect();
        let mut around = Vec::new();
        let mut add = |at: &mut Address, extent: Extent| around.push(Span { at: *at, extent });
        lowered.rings.iter_mut().for_each(|ring| ring.each_span(&mut add));
        lowered.packed.iter_mut().for_each(|packed| packed.each_span(*level, &mut add));
        check_plan::check(&Placed {
            steps: &lowered.steps,
            spans,
            around: &around,
            in_place: &lowered.in_place,
            buffers: &lowered.buffers.list,
            places,
            bases: &bases,
            sums: sums.clone(),
            num_inputs: func.num_inputs(),
        });
    }

    /// Replaces buffers by their places.
    fn relocate(&mut self) {
        let Laid { level, lowered, places, .. } = self;
        let place = &mut |loc: &mut Address, _: Extent| {
            let Address { base, offset } = places[loc.base as usize];
            *loc = Address { base, offset: offset + loc.offset };
        };
        lowered.steps.iter_mut().for_each(|step| step.each_span(*level, place));
        lowered.rings.iter_mut().for_each(|ring| ring.each_span(place));
        lowered.packed.iter_mut().for_each(|packed| packed.each_span(*level, place));
        if cfg!(debug_assertions) {
            self.spans = Spans::of(&mut lowered.steps, *level);
        }
    }
}

/// Assigns offsets to the buffers in the arena, from their lifetimes over the steps.
fn plan_memory(lowered: &Lowered, spans: &Spans) -> MemoryPlan {
    let buffers = &lowered.buffers.list;
    let mut lives: Vec<Option<Life>> = vec![None; buffers.len()];
    for (life, buffer) in lives.iter_mut().zip(buffers).filter(|(_, b)| matches!(b.home, Home::Kept)) {
        *life = Some(Life { first: 0, last: lowered.steps.len(), bytes: buffer.bytes });
    }
    for i in 0..spans.len() {
        for Span { at, .. } in spans.step(i) {
            let b = at.base as usize;
            if matches!(buffers[b].home, Home::Arena) {
                lives[b].get_or_insert(Life { first: i, last: i, bytes: buffers[b].bytes }).last = i;
            }
        }
    }
    let whole = |loc: Address| loc.offset == 0;
    let pairs = lowered.in_place.iter().enumerate().flat_map(|(i, pairs)| {
        let usable = pairs.iter().filter(move |(w, r)| whole(*w) && whole(*r));
        usable.map(move |(w, r)| (i, w.base as usize, r.base as usize))
    });
    place(&lives, &pairs.collect::<Vec<_>>())
}

/// The base and offset of each buffer, the pool of constants, and the constant arrays in use.
fn locate(func: &Func, buffers: &[Buffer], memory: &MemoryPlan) -> (Vec<Address>, Storage, Vec<Arc<Array>>) {
    let (ni, no) = (func.num_inputs() as u32, func.num_outputs() as u32);
    let mut consts = Vec::new();
    let mut pool_bytes = 0;
    let mut bases = Vec::with_capacity(buffers.len());
    for (b, buffer) in buffers.iter().enumerate() {
        bases.push(match &buffer.home {
            Home::Arena | Home::Kept => Address { base: ARENA, offset: memory.offsets[b].unwrap_or(0) },
            Home::Input(k) => Address { base: INPUTS + *k as u32, offset: 0 },
            Home::Output(k) => Address { base: INPUTS + ni + *k as u32, offset: 0 },
            Home::Const(array) => {
                consts.push(array.clone());
                Address { base: INPUTS + ni + no + consts.len() as u32 - 1, offset: 0 }
            }
            Home::Splat { .. } | Home::Iota { .. } => {
                let offset = pool_bytes;
                pool_bytes += aligned(buffer.bytes);
                Address { base: POOL, offset }
            }
        });
    }
    let pool = Storage::new("constants", pool_bytes);
    for (buffer, loc) in buffers.iter().zip(&bases) {
        match buffer.home {
            Home::Splat { dtype, bits } => {
                write(&pool, loc.offset, buffer.bytes, dtype, |_| f64::from_bits(bits));
            }
            Home::Iota { dtype } => write(&pool, loc.offset, buffer.bytes, dtype, |i| i as f64),
            _ => {}
        }
    }
    (bases, pool, consts)
}

fn write(pool: &Storage, offset: usize, bytes: usize, dtype: DType, x: impl Fn(usize) -> f64) {
    for i in 0..bytes / dtype.size() {
        let x = x(i);
        // SAFETY: the pool has been laid out for all these bytes, and nothing else refers to it yet.
        unsafe {
            let at = pool.ptr().add(offset + i * dtype.size());
            match dtype {
                DType::F32 => at.cast::<f32>().write(x as f32),
                DType::F64 => at.cast::<f64>().write(x),
                DType::I32 => at.cast::<i32>().write(x as i32),
                DType::U32 => at.cast::<u32>().write(x as u32),
                DType::Bool => at.cast::<u32>().write(u32::from(x != 0.0)),
            }
        }
    }
}
