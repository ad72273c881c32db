//! Runs functions as compiled plans, and single operations on concrete tensors.

use super::Tensor;
use super::caches::{count_compile, plan_of};
use super::handle::Repr;
use crate::array::Array;
use crate::backend::{Counters, Plan, PlanReport, Workspace};
use crate::graph::{Builder, Func, GraphError, Op, Type};
use crate::simd::Level;
use crate::transform::optimize;
use std::sync::{Arc, Mutex};

/// Counters of the loops in one call of a jitted function.
pub type RunReport = Counters;

/// A compiled function and a pool of scratch memory: one [`Space`] per call at the peak of concurrent calls.
pub(super) struct Compiled {
    plan: Plan,
    /// The inputs of the plan after those of the function: its constant arrays, if the plan is a cached one.
    arrays: Vec<Arc<Array>>,
    out_types: Vec<Type>,
    spaces: Mutex<Vec<Space>>,
}

/// Scratch memory of one call: the workspace, and arrays that hold the results until the run has succeeded,
/// so that a failed run does not change a caller's buffers.
pub(super) struct Space {
    workspace: Workspace,
    pub(super) outputs: Vec<Array>,
}

impl Compiled {
    pub(super) fn new(func: &Func) -> Compiled {
        count_compile();
        let plan = Plan::compile(&optimize(func), Level::detect());
        Compiled { plan, arrays: vec![], out_types: func.output_types(), spaces: Mutex::default() }
    }

    /// The same with a plan from the cache for work outside `jit`.
    pub(super) fn with_cached_plan(func: &Func) -> Compiled {
        let (plan, arrays) = cached_plan(func);
        Compiled { plan, arrays, out_types: func.output_types(), spaces: Mutex::default() }
    }

    /// The cost and memory of the plan, and how the loops of the last run stored their states.
    pub(super) fn report(&self) -> PlanReport {
        let mut report = self.plan.report().clone();
        if let Some(last) = self.lock().last() {
            last.workspace.report_loops(&mut report);
        }
        report
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Space>> {
        self.spaces.lock().expect("invariant: no panic while the scratch is locked")
    }

    /// Runs on concrete tensors. The results are in the returned scratch memory, which the caller must return
    /// with [`Compiled::give_back`].
    pub(super) fn run(&self, inputs: &[Tensor]) -> Space {
        let space = self.lock().pop();
        let mut space = space.unwrap_or_else(|| Space {
            workspace: Workspace::new(),
            outputs: self.out_types.iter().map(|t| Array::zeros(t.dtype(), t.shape().clone())).collect(),
        });
        let arrays: Vec<&Array> =
            inputs.iter().map(Tensor::array).chain(self.arrays.iter().map(|a| &**a)).collect();
        self.plan.run_arrays(&mut space.workspace, &arrays, &mut space.outputs);
        space
    }

    pub(super) fn give_back(&self, space: Space) {
        self.lock().push(space);
    }
}

impl Space {
    pub(super) fn counts(&self) -> RunReport {
        self.workspace.counters()
    }
}

/// The plan of a function from the cache, which is compiled if it is not there, and the function's constant arrays.
/// They are further inputs of the plan, because they may differ between calls of the same function.
fn cached_plan(func: &Func) -> (Plan, Vec<Arc<Array>>) {
    let (func, arrays) = func.with_arrays_as_inputs();
    (plan_of(&func, || Plan::compile(&optimize(&func), Level::detect())), arrays)
}

/// Runs a function on concrete tensors, with a cached plan if there is one.
pub(super) fn run_once(func: &Func, inputs: &[Tensor]) -> Vec<Tensor> {
    let (plan, arrays) = cached_plan(func);
    let inputs: Vec<&Array> = inputs.iter().map(Tensor::array).chain(arrays.iter().map(|a| &**a)).collect();
    run_alone(&plan, &inputs).into_iter().map(Tensor::from_array).collect()
}

/// Runs one operation on concrete tensors.
pub(super) fn eager(op: Op, args: &[&Tensor], hint: Option<&Type>) -> Result<Tensor, GraphError> {
    let types: Vec<Type> = args.iter().map(|x| x.ty()).collect();
    let (mut b, ids) = Builder::with_inputs(&types);
    let out = b.try_push(op, &ids, hint)?;
    let func = b.finish(&[out]);
    let plan = plan_of(&func, || Plan::compile(&func, Level::detect()));
    let inputs: Vec<&Array> = args.iter().map(|x| x.array()).collect();
    let out = run_alone(&plan, &inputs).pop().expect("invariant: an operation has one result");
    Ok(Tensor(Repr::Concrete(Arc::new(out))))
}

/// Runs a plan with a temporary workspace, so that no workspace stays allocated outside `jit`.
fn run_alone(plan: &Plan, inputs: &[&Array]) -> Vec<Array> {
    let types = plan.output_types().iter();
    let mut outputs: Vec<Array> = types.map(|t| Array::zeros(t.dtype(), t.shape().clone())).collect();
    plan.run_arrays(&mut Workspace::new(), inputs, &mut outputs);
    outputs
}
