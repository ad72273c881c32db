//! stub
use crate::graph::Func;
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct TransformError;
pub fn optimize(f: &Func) -> Func {
    f.clone()
}
pub fn vjp(_f: &Func, _o: &[usize], _w: &[usize]) -> Result<Func, TransformError> {
    todo!()
}
pub fn jvp(_f: &Func, _w: &[usize]) -> Result<Func, TransformError> {
    todo!()
}
