//! Integrity of the run folder: changed files, files of another run and partial files are refused.

use crate::data::Points;
use crate::error::{Error, Result};
use crate::io::run::{BEST_FILE, COUNTERS_FILE, RunFolder};
use crate::io::{IoError, read_checkpoint, write_first_format};
use crate::tensor::{Key, Tensor, Tree};
use crate::train::best::Best;
use crate::train::state::Stored;
use crate::train::{
    METRICS_FILE, MODEL_FILE, Recorded, RunInfo, TrainOptions, TrainedFlow, Trainer, TrainingData, step,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

fn options(seed: u64) -> TrainOptions {
    TrainOptions {
        seed: Some(seed),
        updates: Some(6),
        batch: Some(8),
        width: Some(2),
        depth: Some(1),
        fixed_steps: Some(2),
        ..TrainOptions::default()
    }
}

/// Points on a line: no density over a plane is evaluated, and the best weights are stored.
fn line(shift: f64) -> TrainingData {
    let rows: Vec<[f64; 1]> = (0..40).map(|i| [shift + (f64::from(i) * 0.7).sin()]).collect();
    Points::from_rows(rows).unwrap().into()
}

fn density<'a>(folder: &Path, seed: u64) -> Trainer<'a> {
    Trainer::new(line(0.0)).options(&options(seed)).run_dir(folder)
}

fn run(folder: &Path, seed: u64) -> Result<TrainedFlow> {
    density(folder, seed).run()
}

/// The files of a folder and their bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap())).collect()
}

fn model(folder: &Path) -> Vec<u8> {
    fs::read(folder.join(MODEL_FILE)).unwrap()
}

/// Flips the lowest bit of a byte, which turns a digit into another. It writes in place: thousands of new files would
/// be slow.
fn flip(path: &Path, at: usize) {
    let byte = [fs::read(path).unwrap()[at] ^ 1];
    let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at as u64)).unwrap();
    file.write_all(&byte).unwrap();
}

/// Flips a bit in each byte of a file; `same` compares what is then read with the original.
fn each_byte_is_found(path: &Path, same: impl Fn() -> Result<bool>) {
    let name = path.file_name().unwrap().to_string_lossy();
    for at in 0..fs::read(path).unwrap().len() {
        flip(path, at);
        match same() {
            Ok(same) => assert!(same, "{name}: byte {at}: the change is not detected"),
            Err(e) => assert!(e.to_string().contains(&*name), "{name}: byte {at}: {e}"),
        }
        flip(path, at);
    }
}

fn bits(tree: &impl Tree) -> Vec<Vec<u64>> {
    let leaf = |leaf: Tensor| leaf.to_vec().into_iter().map(f64::to_bits).collect();
    tree.leaves().into_iter().map(leaf).collect()
}

#[test]
fn each_changed_byte_is_refused_by_the_files_name_or_changes_nothing() {
    let place = crate::io::scratch();
    run(place.path(), 0).unwrap();
    let was = TrainedFlow::open(place.path()).unwrap();
    each_byte_is_found(&place.path().join(MODEL_FILE), || {
        let now = TrainedFlow::open(place.path())?;
        let same = now.header == was.header && now.num_updates == was.num_updates;
        Ok(same && bits(now.cnf()) == bits(was.cnf()))
    });
    let found = || {
        let found = Recorded::read(place.path(), &was.header, was.num_updates)?;
        Ok::<_, Error>(format!("{found:?}"))
    };
    let before = found().unwrap();
    assert!(before.contains("updates: 6"), "{before}");
    for name in [COUNTERS_FILE, METRICS_FILE] {
        each_byte_is_found(&place.path().join(name), || Ok(found()? == before));
    }
    let folder = RunFolder::open(place.path()).unwrap();
    let best = || Best::read(&folder, &was.header, was.num_updates, was.cnf());
    let before = best().unwrap().unwrap();
    each_byte_is_found(&place.path().join(BEST_FILE), || {
        let now = best()?.expect("a file is there");
        Ok(now.measured == before.measured && bits(&now.flow) == bits(&before.flow))
    });
}

#[test]
fn checkpoints_of_the_first_format_are_read_and_never_resumed() {
    let place = crate::io::scratch();
    let path = place.path().join(MODEL_FILE);
    let learned = run(place.path(), 0).unwrap();
    let checkpoint = read_checkpoint::<RunInfo>(&path).unwrap();
    let header = RunInfo { run: String::new(), ..checkpoint.header.clone() };
    let like = step::begin(&header.config, header.config.model.build(&Key::new(0)).unwrap(), &Key::new(0));
    write_first_format(&path, &header, &checkpoint.into_tree(&Stored::of(&like, None)).unwrap());
    assert_eq!(bits(TrainedFlow::open(place.path()).unwrap().cnf()), bits(learned.cnf()));
    let kept = files(place.path());
    let message = run(place.path(), 0).map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("format 1") && message.contains("`restart`"), "{message}");
    assert!(files(place.path()) == kept);
    // Its header has no checksum: every value must be accepted or refused without a panic.
    each_byte_is_found(&path, || TrainedFlow::open(place.path()).map(|_| true));
    let blocks = br#"\"blocks\":1"#;
    let at = kept[MODEL_FILE].windows(blocks.len()).position(|w| w == blocks).unwrap();
    flip(&path, at + blocks.len() - 1);
    let message = TrainedFlow::open(place.path()).map(|_| ()).unwrap_err().to_string();
    assert!(
        message.contains("model.safetensors") && message.contains("the number of blocks is 0"),
        "{message}"
    );
}

#[test]
fn a_run_from_before_the_test_part_is_read_and_never_resumed() {
    let place = crate::io::scratch();
    let path = place.path().join(MODEL_FILE);
    let learned = run(place.path(), 0).unwrap();
    let checkpoint = read_checkpoint::<RunInfo>(&path).unwrap();
    let mut header = serde_json::to_value(&checkpoint.header).unwrap();
    header.as_object_mut().unwrap().remove("parts").unwrap();
    // Fields of older versions.
    header["points"]["held_out"] = 4.into();
    header["points"]["offset_nats"] = 0.0.into();
    let like = step::begin(
        &checkpoint.header.config,
        checkpoint.header.config.model.build(&Key::new(0)).unwrap(),
        &Key::new(0),
    );
    let stored = checkpoint.into_tree(&Stored::of(&like, None)).unwrap();
    crate::io::write_checkpoint(&path, &header, &stored).unwrap();
    let opened = TrainedFlow::open(place.path()).unwrap();
    assert!(bits(opened.cnf()) == bits(learned.cnf()) && opened.header.parts.is_none());
    let message = run(place.path(), 0).map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("without a test part") && message.contains("`restart`"), "{message}");
}

#[test]
fn a_run_is_not_resumed_with_other_parts() {
    let place = crate::io::scratch();
    run(place.path(), 0).unwrap();
    let TrainingData::Points(points, mut given) = line(0.0) else { unreachable!() };
    given.test = Some(points.clone());
    let density = Trainer::new(TrainingData::Points(points, given)).options(&options(0));
    let message = density.run_dir(place.path()).run().map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("32 training, 4 validation, 4 test"), "{message}");
    assert!(message.contains("36 training, 4 validation, 40 test"), "{message}");
}

#[test]
fn a_damaged_folder_is_left_as_it_is_and_resumed_once_it_is_whole() {
    let place = crate::io::scratch();
    let folder = place.path().join("run");
    run(&folder, 0).unwrap();
    let whole = files(&folder);
    for (name, bytes) in [MODEL_FILE, BEST_FILE, COUNTERS_FILE, METRICS_FILE].map(|n| (n, &whole[n])) {
        for at in [bytes.len() / 3, 2 * bytes.len() / 3, bytes.len() - 2] {
            flip(&folder.join(name), at);
            let damaged = files(&folder);
            match run(&folder, 0) {
                Ok(_) => assert!(model(&folder) == whole[MODEL_FILE], "{name}: byte {at}"),
                Err(e) => {
                    let message = e.to_string();
                    assert!(message.contains(name) && message.contains("nothing was changed"), "{message}");
                    assert!(files(&folder) == damaged, "{name}: byte {at}: something was written");
                }
            }
            fs::write(folder.join(name), bytes).unwrap();
        }
    }
    assert!(run(&folder, 0).is_ok() && model(&folder) == whole[MODEL_FILE]);
    // Other options and other data are refused before anything is written.
    let kept = files(&folder);
    let other = run(&folder, 1).map(|_| ()).unwrap_err().to_string();
    assert!(other.contains("`seed`=0, not `seed`=1"), "{other}");
    let shifted = Trainer::new(line(2.0)).options(&options(0)).run_dir(&folder);
    let other = shifted.run().map(|_| ()).unwrap_err().to_string();
    assert!(other.contains("holds other data (hash of the values: "), "{other}");
    // Other columns and another validation part are told as such, not as an option that they change.
    let TrainingData::Points(points, _) = line(0.0) else { unreachable!() };
    let wide: Vec<[f64; 2]> = points.values().iter().map(|&x| [x, x * x]).collect();
    let wide = Trainer::new(Points::from_rows(wide).unwrap()).options(&options(0)).run_dir(&folder);
    let other = wide.run().map(|_| ()).unwrap_err().to_string();
    assert!(other.contains("holds other data (columns: x1 in that run, x1, x2 now)"), "{other}");
    let given = crate::data::Given { validation: Some(points.clone()), test: None };
    let measured = Trainer::new(TrainingData::Points(points, given)).options(&options(0)).run_dir(&folder);
    let other = measured.run().map(|_| ()).unwrap_err().to_string();
    assert!(other.contains("holds other data (that run has no `validation`)"), "{other}");
    assert!(files(&folder) == kept);
}

#[test]
fn what_cannot_go_on_is_moved_aside_when_that_is_asked_for() {
    let place = crate::io::scratch();
    let (folder, fresh) = (place.path().join("run"), place.path().join("fresh"));
    run(&fresh, 1).unwrap();
    run(&folder, 0).unwrap();
    flip(&folder.join(MODEL_FILE), 99);
    let damaged = files(&folder);
    let notes = Cell::new(0);
    let note = |text: &str| notes.set(notes.get() + usize::from(text.contains("was moved to")));
    density(&folder, 1).restart().on_note(note).run().unwrap();
    assert!(files(&place.path().join("run.1")) == damaged && notes.get() == 1);
    assert!(model(&folder) == model(&fresh), "the new run differs from one in a folder of its own");
    // A missing checkpoint is reported too.
    fs::remove_file(folder.join(MODEL_FILE)).unwrap();
    let left = files(&folder);
    let lost = run(&folder, 1).map(|_| ()).unwrap_err();
    assert!(matches!(lost, Error::Io(IoError::Lost { .. })), "{lost}");
    assert!(files(&folder) == left);
    density(&folder, 1).restart().run().unwrap();
    assert!(files(&place.path().join("run.2")) == left && model(&folder) == model(&fresh));
    // Without a run there is nothing to move.
    density(&place.path().join("new"), 1).restart().run().unwrap();
    assert!(model(&place.path().join("new")) == model(&fresh) && !place.path().join("new.1").exists());
}

#[test]
fn nothing_of_another_run_is_believed() {
    let place = crate::io::scratch();
    let (one, two) = (place.path().join("one"), place.path().join("two"));
    run(&one, 1).unwrap();
    run(&two, 2).unwrap();
    for name in [BEST_FILE, COUNTERS_FILE] {
        let own = fs::read(two.join(name)).unwrap();
        fs::copy(one.join(name), two.join(name)).unwrap();
        let kept = files(&two);
        let message = run(&two, 2).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains(name) && message.contains("another run"), "{message}");
        assert!(files(&two) == kept);
        fs::write(two.join(name), own).unwrap();
    }
    fs::remove_file(two.join(BEST_FILE)).unwrap();
    let message = run(&two, 2).map(|_| ()).unwrap_err().to_string();
    assert!(message.contains(BEST_FILE) && message.contains("`restart`"), "{message}");
}

#[test]
fn a_folder_in_which_a_run_trains_is_refused_with_its_process() {
    let place = crate::io::scratch();
    let refused = Cell::new(0);
    let again = |_: &crate::train::Progress| {
        let message = run(place.path(), 0).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains(&format!("process {} works in", std::process::id())), "{message}");
        refused.set(refused.get() + 1);
    };
    density(place.path(), 0).on_update(again).run().unwrap();
    assert_eq!(refused.get(), 6);
    assert!(run(place.path(), 0).is_ok() && !place.path().join(".lock").exists());
}

#[test]
fn a_run_that_is_told_to_stop_is_saved_and_ends_with_the_bits_of_one_that_was_not() {
    let place = crate::io::scratch();
    let (whole, parts) = (place.path().join("whole"), place.path().join("parts"));
    run(&whole, 0).unwrap();
    // The stop is requested before each update and before each part of the final evaluation.
    for stops in 0..9 {
        let asked = Cell::new(0);
        let stop = || asked.replace(asked.get() + 1) == 1;
        let Err(stopped) = density(&parts, 0).stop_when(stop).run() else { break };
        let message = stopped.to_string();
        let updates = (stops + 1).min(6);
        assert!(message.contains(&format!("stopped after update {updates} of 6")), "{stops}: {message}");
        assert!(message.contains("parts; train with the same `run_dir` to continue it"), "{message}");
        assert_eq!(TrainedFlow::open(&parts).unwrap().num_updates, updates);
    }
    run(&parts, 0).unwrap();
    assert!(model(&parts) == model(&whole));
    assert!(fs::read(parts.join(BEST_FILE)).unwrap() == fs::read(whole.join(BEST_FILE)).unwrap());
}

#[test]
fn a_finished_run_goes_on_without_its_rows_and_says_so() {
    let place = crate::io::scratch();
    run(place.path(), 0).unwrap();
    let whole = model(place.path());
    for name in [METRICS_FILE, COUNTERS_FILE] {
        fs::remove_file(place.path().join(name)).unwrap();
        let said = Cell::new(false);
        let note = |text: &str| said.set(said.get() || text.contains(&format!("{name} is missing")));
        density(place.path(), 0).on_note(note).run().unwrap();
        assert!(said.get() && model(place.path()) == whole, "{name}");
    }
}

#[test]
fn the_way_a_path_was_typed_changes_no_byte() {
    let place = crate::io::scratch();
    let table: String = (0..40).map(|i| format!("{}\n", (f64::from(i) * 0.7).sin())).collect();
    fs::write(place.path().join("p.csv"), format!("x\n{table}")).unwrap();
    let [a, b] = ["p.csv", "./p.csv"].map(|typed| {
        let folder = place.path().join(typed.replace(['/', '.'], "-"));
        let points = Points::open(place.path().join(typed)).unwrap().with_name(typed);
        let density = Trainer::new(points).options(&options(0));
        density.run_dir(&folder).run().unwrap();
        model(&folder)
    });
    assert!(a == b);
}

#[test]
fn samples_that_are_no_numbers_in_units_are_refused_by_their_row() {
    let place = crate::io::scratch();
    let mut learned = run(place.path(), 0).unwrap();
    let points = learned.fitted.frames.points.as_mut().unwrap();
    points.std = vec![1.7e308];
    let drawn = learned.sample(100, &Key::new(1));
    let message = drawn.unwrap_err().to_string();
    assert!(message.contains("sample ") && message.contains("inf") && message.contains("scale"), "{message}");
}
