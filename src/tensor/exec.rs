//! Compiles and runs functions with the backend in use, and single operations on concrete tensors.
//!
//! Except for tests and fuzzing, this is the only file above `backend/` that compiles or runs a program. A run writes its results to arrays of a
//! [`Space`], so that a failed run does not change a caller's buffers. After a run that succeeded, the caller exchanges
//! these arrays for its own: no result is copied.

use super::Tensor;
use super::caches::{count_compile, plan_of};
use super::handle::Repr;
use crate::array::Array;
use crate::backend::{Counters, Executable, PlanReport, Runner, current};
use crate::graph::{Builder, Func, GraphError, Op, Type};
use crate::transform::optimize;
use std::sync::{Arc, Mutex};

/// Counters of the loops in one call of a jitted function.
pub type RunReport = Counters;

/// A compiled function and a pool of scratch memory: one [`Space`] per call at the peak of concurrent calls.
pub(super) struct Compiled {
    executable: Arc<dyn Executable>,
    /// The inputs after those of the function: its constant arrays, if the program is a cached one.
    arrays: Vec<Arc<Array>>,
    out_types: Vec<Type>,
    spaces: Mutex<Vec<Space>>,
}

/// Scratch memory of one call: a runner, and arrays that hold the results until the run has succeeded.
pub(super) struct Space {
    runner: Box<dyn Runner>,
    pub(super) outputs: Vec<Array>,
}

impl Compiled {
    pub(super) fn new(func: &Func) -> Compiled {
        count_compile();
        let executable = current().compile(&optimize(func));
        Compiled { executable, arrays: vec![], out_types: func.output_types(), spaces: Mutex::default() }
    }

    /// The same with a plan from the cache for work outside `jit`.
    pub(super) fn with_cached_plan(func: &Func) -> Compiled {
        let (executable, arrays) = cached_plan(func);
        Compiled { executable, arrays, out_types: func.output_types(), spaces: Mutex::default() }
    }

    /// The cost and memory of the program, and how the loops of the last run stored their states.
    pub(super) fn report(&self) -> PlanReport {
        match self.lock().last() {
            Some(last) => last.runner.report(),
            None => self.executable.report().clone(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Space>> {
        self.spaces.lock().expect("invariant: no panic while the scratch is locked")
    }

    /// Runs on concrete tensors. The results are in the returned scratch memory, which the caller must return
    /// with [`Compiled::give_back`].
    pub(super) fn run(&self, inputs: &[Tensor]) -> Space {
        let space = self.lock().pop();
        let mut space = space
            .unwrap_or_else(|| Space { runner: self.executable.runner(), outputs: zeros(&self.out_types) });
        let arrays: Vec<&Array> =
            inputs.iter().map(Tensor::array).chain(self.arrays.iter().map(|a| &**a)).collect();
        space.runner.run(&arrays, &mut space.outputs);
        space
    }

    pub(super) fn give_back(&self, space: Space) {
        self.lock().push(space);
    }
}

impl Space {
    /// The first `num` results, in order.
    pub(super) fn results(&mut self, num: usize) -> impl Iterator<Item = Taken<'_>> {
        self.outputs[..num].iter_mut().map(Taken)
    }

    pub(super) fn counts(&self) -> RunReport {
        self.runner.counters()
    }
}

/// A result of a run, which the caller takes out of the scratch memory. The next run overwrites the array that is left
/// there.
pub(super) struct Taken<'a>(&'a mut Array);

impl Taken<'_> {
    /// The result in the array of `donor`, whose buffer stays in the scratch memory in exchange.
    fn into_array(self, mut donor: Array) -> Array {
        donor.swap_data(self.0);
        donor
    }

    /// The result in an array of its own. Nothing is copied: an array of zeros stays in the scratch memory.
    pub(super) fn into_tensor(self) -> Tensor {
        let zeros = Array::zeros(self.0.dtype(), self.0.shape().clone());
        Tensor::from_array(self.into_array(zeros))
    }

    /// The result in the first of these arrays that has its type, or else in an array of its own.
    pub(super) fn into_one_of(self, donors: &mut Vec<Array>) -> Tensor {
        let Some(i) = donors.iter().position(|donor| donor.is_like(self.0)) else {
            return self.into_tensor();
        };
        let donor = donors.swap_remove(i);
        donor.forget_name();
        Tensor::from_array(self.into_array(donor))
    }

    /// Replaces `tensor` by the result. Exchanges the buffers if that of `tensor` is not shared and has the same type.
    pub(super) fn replace(self, tensor: &mut Tensor) {
        let own = match &mut tensor.0 {
            Repr::Concrete(array) => Arc::get_mut(array).filter(|array| array.is_like(self.0)),
            Repr::Traced { .. } => None,
        };
        match own {
            Some(array) => array.swap_data(self.0),
            None => *tensor = self.into_tensor(),
        }
    }
}

/// The program of a function from the cache, which is compiled if it is not there, and the function's constant arrays.
/// They are further inputs of the program, because they may differ between calls of the same function.
fn cached_plan(func: &Func) -> (Arc<dyn Executable>, Vec<Arc<Array>>) {
    let (func, arrays) = func.with_arrays_as_inputs();
    (plan_of(&func, || current().compile(&optimize(&func))), arrays)
}

/// Runs a function on concrete tensors, with a cached plan if there is one.
pub(super) fn run_once(func: &Func, inputs: &[Tensor]) -> Vec<Tensor> {
    let (executable, arrays) = cached_plan(func);
    let inputs: Vec<&Array> = inputs.iter().map(Tensor::array).chain(arrays.iter().map(|a| &**a)).collect();
    run_alone(&*executable, &inputs).into_iter().map(Tensor::from_array).collect()
}

/// Runs one operation on concrete tensors.
pub(super) fn eager(op: Op, args: &[&Tensor], hint: Option<&Type>) -> Result<Tensor, GraphError> {
    let types: Vec<Type> = args.iter().map(|x| x.ty()).collect();
    let (mut b, ids) = Builder::with_inputs(&types);
    let out = b.try_push(op, &ids, hint)?;
    let func = b.finish(&[out]);
    let executable = plan_of(&func, || current().compile(&func));
    let inputs: Vec<&Array> = args.iter().map(|x| x.array()).collect();
    let out = run_alone(&*executable, &inputs).pop().expect("invariant: an operation has one result");
    Ok(Tensor(Repr::Concrete(Arc::new(out))))
}

/// Runs a program with a temporary runner, so that no memory of a run stays allocated outside `jit`.
fn run_alone(executable: &dyn Executable, inputs: &[&Array]) -> Vec<Array> {
    let mut outputs = zeros(executable.output_types());
    executable.runner().run(inputs, &mut outputs);
    outputs
}

fn zeros(types: &[Type]) -> Vec<Array> {
    types.iter().map(|ty| Array::zeros(ty.dtype(), ty.shape().clone())).collect()
}
