//! stub
#[derive(Clone, Copy)]
pub enum Level {
    P,
}
impl Level {
    pub fn detect() -> Level {
        Level::P
    }
}
