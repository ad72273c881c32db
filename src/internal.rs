//! What the command line takes from inside the library. It is not public: any version may change or remove it.

pub use crate::io::{
    read_csv_lines, read_npy_header, write_csv, write_csv_parts, write_npy, write_npy_parts,
};
#[cfg(feature = "plot")]
pub use crate::plot::{ImageGrid, extra::histogram_of_parts};
pub use crate::simd::Level;
#[cfg(feature = "train")]
pub use crate::{
    backend::Peak,
    data::{Estimate, Given, Rule, estimate::grouped},
    eval::EvalError,
    train::{
        Activity, DRAW_TOLERANCE, DensityGrid, DivergenceKind, FAR, FieldConfig, FlopsOf, IMAGE_TOLERANCE,
        ImagesFrame, MEASURE_TOLERANCE, ModelConfig, ModelKind, Objective, ObjectiveKind, OptimizerKind,
        PhasePlan, PixelTransformKind, Recorded, RunInfo, Steps, ToleranceRow, TrainConfig, check_free,
        check_tolerances, default_folder, num_weights,
    },
};
