//! Running functions: compiled plans with recycled scratch, and single operations at once.

use super::Tensor;
use super::handle::Repr;
use crate::array::Array;
use crate::backend::{Counters, Plan, PlanReport, Workspace};
use crate::graph::{Builder, Func, GraphError, Op, Type};
use crate::simd::Level;
use crate::transform::optimize;
use std::sync::{Arc, Mutex};

/// What a call did beside its result: the loops' counters of the last run.
pub type RunReport = Counters;

/// A compiled function and scratch for as many callers as ever ran it at once.
pub(super) struct Compiled {
    plan: Plan,
    out_types: Vec<Type>,
    spaces: Mutex<Vec<Space>>,
}

/// Scratch of one caller: the workspace, and arrays that results are written to first, so that a
/// caller's buffers are touched only once it is known that the run went well.
pub(super) struct Space {
    workspace: Workspace,
    pub(super) outputs: Vec<Array>,
}

impl Compiled {
    pub(super) fn new(func: &Func) -> Compiled {
        let func = optimize(func);
        let plan = Plan::compile(&func, Level::detect());
        Compiled { plan, out_types: func.output_types(), spaces: Mutex::default() }
    }

    pub(super) fn report(&self) -> &PlanReport {
        self.plan.report()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Space>> {
        self.spaces.lock().expect("invariant: no panic while the scratch is locked")
    }

    /// Runs on concrete tensors; the results lie in the returned scratch, to be given back.
    pub(super) fn run(&self, inputs: &[Tensor]) -> Space {
        let space = self.lock().pop();
        let mut space = space.unwrap_or_else(|| Space {
            workspace: Workspace::new(),
            outputs: self.out_types.iter().map(|t| Array::zeros(t.dtype(), t.shape().clone())).collect(),
        });
        let arrays: Vec<&Array> = inputs.iter().map(Tensor::array).collect();
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

/// Compiles and runs a function on concrete tensors, once.
pub(super) fn run_once(func: &Func, inputs: &[Tensor]) -> Vec<Tensor> {
    let compiled = Compiled::new(func);
    compiled.run(inputs).outputs.into_iter().map(Tensor::from_array).collect()
}

/// One operation on concrete tensors, at once.
pub(super) fn eager(op: Op, args: &[&Tensor], hint: Option<&Type>) -> Result<Tensor, GraphError> {
    let types: Vec<Type> = args.iter().map(|x| x.ty()).collect();
    let (mut b, ids) = Builder::with_inputs(&types);
    let out = b.try_push(op, &ids, hint)?;
    let plan = Plan::compile(&b.finish(&[out]), Level::detect());
    let ty = &plan.output_types()[0];
    let mut outputs = [Array::zeros(ty.dtype(), ty.shape().clone())];
    let inputs: Vec<&Array> = args.iter().map(|x| x.array()).collect();
    plan.run_arrays(&mut Workspace::new(), &inputs, &mut outputs);
    let [out] = outputs;
    Ok(Tensor(Repr::Concrete(Arc::new(out))))
}
