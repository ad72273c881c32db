//! `Observer`: a Rust function that is called with a value each time a program computes this value.
//!
//! Observers are the only side effect of a program. They read values and return nothing, so no result depends
//! on them and every transform may treat the operation as the identity. Two observers are equal if they are the
//! same function object.

use crate::array::{Data, Shape};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The value passed to an observer.
#[derive(Clone, Copy, Debug)]
pub struct CallbackValue<'a> {
    /// The value's shape.
    pub shape: &'a Shape,
    /// Its elements in row-major order, as f64.
    pub values: &'a [f64],
}

/// A Rust function that a program calls with a value.
#[derive(Clone)]
pub struct Observer(Arc<dyn Fn(CallbackValue<'_>) + Send + Sync>);

impl Observer {
    /// Wraps `f`, which may be called from any thread, and from several threads at once.
    pub fn new(f: impl Fn(CallbackValue<'_>) + Send + Sync + 'static) -> Self {
        Observer(Arc::new(f))
    }

    /// Calls the observer with a value.
    pub(crate) fn see(&self, shape: &Shape, data: &Data) {
        let values: Vec<f64> = (0..data.len()).map(|i| data.get_f64(i)).collect();
        (self.0)(CallbackValue { shape, values: &values });
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

impl PartialEq for Observer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for Observer {}
impl Hash for Observer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<()>().hash(state);
    }
}
