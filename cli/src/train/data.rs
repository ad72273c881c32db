//! DATA of `flowline train`: an image, points, a toy density or a set of images.

use super::super::error::{CliError, Result, nearest};
use super::super::input;
use super::super::say::note;
use super::super::table::grouped;
use super::Args;
use flowline::__internal::{Given, listed, read_npy_header};
use flowline::data::{ImageDensity, ImageSet, Points, ToyDensity};
use flowline::train::{TrainError, TrainedFlow, TrainingData};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Refuses standard input for several ranks: only one of them can read it.
///
/// # Errors
/// [`CliError::Usage`].
pub fn check_input(args: &Args, ranks: usize) -> Result<()> {
    let files = [("DATA", &args.data), ("--validation", &args.validation), ("--test", &args.test)];
    let is_standard = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new(input::STANDARD));
    match files.into_iter().find(|(_, path)| ranks > 1 && is_standard(path)) {
        None => Ok(()),
        Some((what, _)) => Err(CliError::Usage(format!(
            "{what} is standard input, which {ranks} ranks cannot share; write the table to a file that all ranks can read"
        ))),
    }
}

/// Opens DATA for a run in a folder: the built-in image if DATA is not given, a table, a toy density if no file has
/// its name, a set of images, points as `.npy`, otherwise an image.
///
/// # Errors
/// Data that cannot be read; options that do not apply to them.
pub fn open(args: &Args, folder: &Path) -> Result<TrainingData> {
    let set = args.data.as_deref().map(is_image_set).transpose()?.unwrap_or(false);
    let is_table = args.data.as_deref().is_some_and(input::is_table);
    let labels = [&args.labels, &args.validation_labels, &args.test_labels];
    for (option, file) in ["labels", "validation_labels", "test_labels"].into_iter().zip(labels) {
        let takes = |_: &&PathBuf| set || is_table && option == "labels";
        let reason = match is_table {
            true => "it needs a set of images; a table for `validation` or `test` has the column `labels`",
            false => "it needs a table or a set of images, and DATA is neither",
        };
        if let Some(file) = file.as_ref().filter(|file| !takes(file)) {
            return Err(useless(option, file.display().to_string(), reason));
        }
    }
    let keeps = args.keep_counters.then(|| ("keep_counters", "true".to_owned()));
    if let Some((option, value)) = input::of_tables(args.columns.as_ref(), args.cells).or(keeps)
        && !is_table
    {
        return Err(useless(option, value, NO_TABLE));
    }
    let Some(path) = &args.data else { return check_given(args, ImageDensity::embedded().into()) };
    if is_table {
        return table(args, path, folder);
    }
    let toy = path.to_str().filter(|_| !path.exists()).and_then(|name| name.parse::<ToyDensity>().ok());
    if let Some(toy) = toy {
        return check_given(args, toy.into());
    }
    if !path.exists() {
        return Err(missing(path));
    }
    if set {
        return images(args, path);
    }
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy")) {
        let [validation, test] =
            [&args.validation, &args.test].map(|path| path.as_ref().map(Points::open).transpose());
        let given = Given { validation: validation?, test: test? };
        return Ok(TrainingData::Points(Points::open(path)?, given));
    }
    check_given(args, ImageDensity::open(path)?.into())
}

const NO_TABLE: &str = "DATA is not a table (.csv, .tsv, .txt, .dat, one of them and .gz, or standard input)";

/// The columns that a run in the folder learned, if there is one to resume. It may have learned columns that are left out
/// now.
fn learned_columns(args: &Args, folder: &Path) -> Vec<String> {
    let run = args.resume.then(|| TrainedFlow::open(folder).ok()).flatten();
    run.filter(|run| run.header.frames.points.is_some()).map_or_else(Vec::new, |run| run.columns())
}

/// Prints the number of rows of each class.
fn note_classes(points: &Points) {
    let classes = points.class_names().iter().zip(points.class_counts());
    let each: Vec<String> = classes.map(|(name, n)| format!("{name} ({})", grouped(n as u64))).collect();
    if !each.is_empty() {
        note(&format!(
            "{}: {} classes, with their rows: {}",
            points.name,
            each.len(),
            listed(&each, "classes")
        ));
    }
}

/// Points of a table; the validation and test tables have the same columns.
fn table(args: &Args, path: &Path, folder: &Path) -> Result<TrainingData> {
    let options = input::options(args.columns.as_deref(), args.cells)?;
    let options = input::with_labels(options, args.labels.as_deref());
    let options_of_data = if args.keep_counters { options.clone() } else { options.clone().skip_counters() };
    let found = input::read(path, &options_of_data, &learned_columns(args, folder))?;
    input::note_columns(&found, &options, args.keep_counters);
    input::note_dropped(&found);
    let like = if found.has_heading { found.columns.clone() } else { Vec::new() };
    let points = Points::from_table(found)?;
    note_classes(&points);
    let other = |path: &Option<PathBuf>| -> Result<Option<Points>> {
        let Some(path) = path else { return Ok(None) };
        Ok(Some(match input::is_table(path) {
            true => {
                let found = input::read(path, &options, &like)?;
                input::check_names(&found, &options, &like)?;
                input::note_dropped(&found);
                Points::from_table(found)?
            }
            false => Points::open(path)?,
        }))
    };
    let given = Given { validation: other(&args.validation)?, test: other(&args.test)? };
    Ok(TrainingData::Points(points, given))
}

fn images(args: &Args, path: &Path) -> Result<TrainingData> {
    let open = |path: &Path, labels: Option<&PathBuf>| -> Result<Arc<ImageSet>> {
        let images = ImageSet::open(path)?;
        Ok(Arc::new(if let Some(labels) = labels { images.with_labels(labels)? } else { images }))
    };
    let given = |path: &Option<PathBuf>, labels: &Option<PathBuf>| {
        path.as_ref().map(|path| open(path, labels.as_ref())).transpose()
    };
    let validation = given(&args.validation, &args.validation_labels)?;
    let test = given(&args.test, &args.test_labels)?;
    Ok(TrainingData::Images(open(path, args.labels.as_ref())?, Given { validation, test }))
}

/// Whether a path is a set of images: a folder, an array of more than two axes, a gzip or IDX file.
fn is_image_set(path: &Path) -> Result<bool> {
    if path.is_dir() || input::is_table(path) {
        return Ok(path.is_dir());
    }
    let is = |ending: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
    if is("npy") {
        return Ok(read_npy_header(path)?.shape.len() > 2);
    }
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    Ok(is("gz") || is("idx") || name.ends_with("-ubyte"))
}

/// Refuses `--validation` and `--test` for an image or a toy density, from which any number of points can be drawn.
fn check_given(args: &Args, data: TrainingData) -> Result<TrainingData> {
    let given = [("validation", &args.validation), ("test", &args.test)];
    match given.into_iter().find_map(|(option, path)| Some((option, path.as_ref()?))) {
        None => Ok(data),
        Some((option, path)) => {
            let reason = "flowline draws new validation and test points from an image or a toy density";
            Err(useless(option, path.display().to_string(), reason))
        }
    }
}

fn useless(option: &'static str, value: String, reason: &'static str) -> CliError {
    TrainError::Useless { option, value, reason }.into()
}

/// The error for DATA that does not exist, with a suggestion.
fn missing(path: &Path) -> CliError {
    let (name, toys) = (path.to_string_lossy(), ToyDensity::ALL.map(ToyDensity::name));
    let hint = match nearest(&name, toys) {
        Some(toy) => format!("did you mean the toy density {toy}?"),
        None if path.extension().is_some() => "check the path".to_owned(),
        None => format!(
            "give an image, points (.csv, .tsv, .txt, .dat, .npy), a set of images, or a toy density ({})",
            toys.join(", ")
        ),
    };
    CliError::NoData { path: path.to_owned(), hint }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn standard_input_is_refused_for_several_ranks() {
        for (arguments, what) in [
            (&["-"][..], Some("DATA")),
            (&["a.csv", "--validation", "-"], Some("--validation")),
            (&["a.csv", "--test", "-"], Some("--test")),
            (&["a.csv"], None),
            (&[], None),
        ] {
            let args = Command::parse_from(std::iter::once(&"train").chain(arguments)).args;
            assert!(check_input(&args, 1).is_ok());
            let found = check_input(&args, 3).map_err(|e| e.to_string());
            let expected = what.map(|what| format!("{what} is standard input, which 3 ranks cannot share"));
            match (found, expected) {
                (Ok(()), None) => {}
                (Err(found), Some(expected)) => assert!(found.starts_with(&expected), "{found}"),
                (found, _) => panic!("{arguments:?}: {found:?}"),
            }
        }
    }
}
