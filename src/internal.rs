//! Items for the command line, the benches and the tests.
//!
//! They are not public: any version may change or remove them.

pub use crate::io::{
    Remedy, heading, is_table_name, listed, meant, plain, read_npy_header, shortened, write_csv_parts,
    write_npy_parts, write_row,
};
pub use crate::simd::Level;
#[cfg(feature = "train")]
pub use crate::{
    backend::Peak,
    data::{
        Given,
        estimate::grouped,
        extra::{Estimate, SamplingRule},
        place,
    },
    eval::{EvalError, stopped, with_at_most},
    io::lock_holder,
    train::{
        DRAW_TOLERANCE, FAR, FieldConfig, FlopsOf, GridAccuracy, IMAGE_TOLERANCE, INPUT, ImagesFrame,
        MEASURE_TOLERANCE, MODEL, MODEL_FILE, ModelConfig, OBJECTIVE, OPTIMIZER, OPTIONS, OUTPUT, PhasePlan,
        PointsFrame, RUN, Recorded, SOLVER, Steps, ToleranceRow, TrainOption, Values, check_free,
        check_output, check_tolerances, default_folder,
        extra::{
            Activity, DensityGrid, DivergenceKind, InitialFlowKind, ModelKind, Objective, ObjectiveKind,
            OptimizerKind, PixelTransformKind, PlotsKind, RunInfo, Scores, TargetKind, TimesKind,
            TrainConfig,
        },
        seconds_trained,
    },
};

pub mod simd {
    pub use crate::simd::*;
}
#[cfg(feature = "autodiff")]
pub mod array {
    pub use crate::array::*;
}
#[cfg(feature = "autodiff")]
pub mod graph {
    pub use crate::graph::*;
}
#[cfg(feature = "autodiff")]
pub mod transform {
    pub use crate::transform::*;
}
#[cfg(feature = "autodiff")]
pub mod backend {
    pub use crate::backend::*;
}
#[cfg(feature = "train")]
pub mod eval {
    pub use crate::eval::*;
}
