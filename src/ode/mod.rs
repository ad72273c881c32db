//! stub
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct OdeError;
#[derive(Debug, Clone)]
pub enum Outcome {
    MaxSteps,
}
impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}
impl Outcome {
    pub fn from_values(_s: f64, _t: f64, _dt: f64, _n: f64, _c: f64) -> Option<Outcome> {
        None
    }
}
