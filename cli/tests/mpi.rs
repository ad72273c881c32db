//! Training by several processes that `mpirun` starts. The result has the bits of a single process, also after
//! kills and stalls. Ranks with other data, options or programs are refused.
//!
//! Needs a build with the feature `mpi`, and `mpirun`; `.ci/mpi` runs it. If `FLOWLINE_MPI_SHORT` is set, it compares
//! fewer runs, kills fewer and stalls none.

#[path = "../../src/io/scratch.rs"]
mod folders;

use flowline::__internal::simd::Level;
use folders::{Scratch, scratch};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

const SMALL: &str = "--width 8 --depth 1 --batch 64 --shards 16";

struct Place(Scratch);

impl Place {
    fn new() -> Place {
        Place(scratch())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// One process, without a launcher.
    fn alone(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowline"));
        command.current_dir(self.0.path()).args(arguments.split_whitespace());
        command
    }

    /// `mpirun` with parts of a job: each has a number of ranks, a program and its arguments.
    fn mpirun(&self, parts: &[(usize, &str, &str)]) -> Command {
        let mut command = Command::new("mpirun");
        command.current_dir(self.0.path());
        let options = "--oversubscribe --allow-run-as-root --mca btl_vader_single_copy_mechanism none --mca mpi_yield_when_idle 1";
        command.args(options.split_whitespace());
        for (i, (ranks, program, arguments)) in parts.iter().enumerate() {
            if i > 0 {
                command.arg(":");
            }
            command.args(["-n", &ranks.to_string(), program]).args(arguments.split_whitespace());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn ranks(&self, ranks: usize, arguments: &str) -> Command {
        self.mpirun(&[(ranks, env!("CARGO_BIN_EXE_flowline"), arguments)])
    }

    fn model(&self, run: &str) -> Vec<u8> {
        fs::read(self.path(run).join("model.safetensors")).unwrap()
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn is_short() -> bool {
    std::env::var_os("FLOWLINE_MPI_SHORT").is_some()
}

/// The process id of a rank of the job that runs in the folder of `place`.
fn process(place: &Place, rank: usize) -> Option<u32> {
    let wanted = format!("OMPI_COMM_WORLD_RANK={rank}");
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let is_rank = environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes());
        let is_here =
            fs::read_link(entry.path().join("cwd")).ok()? == fs::canonicalize(place.0.path()).ok()?;
        (is_rank && is_here).then_some(pid)
    })
}

fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status();
    assert!(status.unwrap().success());
}

/// Waits until a file is there, or the job has ended.
fn wait_for(path: &PathBuf, job: &mut Child) {
    let since = Instant::now();
    while !path.exists() && job.try_wait().unwrap().is_none() {
        assert!(since.elapsed() < Duration::from_secs(60), "{} does not appear", path.display());
        thread::sleep(Duration::from_millis(5));
    }
}

/// Names and arguments of training runs: one for each kind of data, and for an image one for each objective.
fn jobs() -> [(&'static str, String); 6] {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/data");
    let (images, labels) = ("drawings-train-images-idx3-ubyte.gz", "drawings-train-labels-idx1-ubyte.gz");
    let steps = |data: &str| format!("{data} {SMALL} --fixed-steps 4 --updates 30");
    [
        ("toy", steps("moons")),
        ("image by flow matching", steps("--objective flow-matching")),
        ("image by maximum likelihood", steps("--objective maximum-likelihood")),
        ("image by both", steps("--objective both")),
        ("points", steps(&format!("{data}/points.csv"))),
        ("labelled images", format!("{data}/{images} --labels {data}/{labels} {SMALL} --updates 8")),
    ]
}

/// Trains in one process and in 1, 2 and 4 ranks, at an instruction level, and compares the models.
fn compare(place: &Place, name: &str, arguments: &str, level: Level) {
    let folder = format!("{name}-{level}").replace(' ', "-");
    let run = |mut command: Command, part: &str| {
        let output = command.env("FLOWLINE_LEVEL", level.to_string()).output().unwrap();
        assert!(output.status.success(), "{name}, {part}, {level}: {}", text(&output));
        // The ranks share a terminal: the summary is printed once.
        assert_eq!(text(&output).matches("done after").count(), 1, "{}", text(&output));
        place.model(&format!("{folder}/{part}"))
    };
    let train = |part: &str| format!("train {arguments} --plots none --out {folder}/{part}");
    let alone = run(place.alone(&train("alone")), "alone");
    for ranks in [1, 2, 4] {
        let part = ranks.to_string();
        assert!(run(place.ranks(ranks, &train(&part)), &part) == alone, "{name}: {ranks} ranks, {level}");
    }
}

#[test]
fn any_number_of_processes_ends_with_the_bytes_of_one() {
    let place = Place::new();
    let chosen = if is_short() { 1 } else { jobs().len() };
    for (name, arguments) in jobs().iter().take(chosen) {
        compare(&place, name, arguments, Level::detect());
    }
}

#[test]
fn each_instruction_level_has_the_same_bytes_on_any_number_of_processes() {
    if is_short() {
        return;
    }
    let place = Place::new();
    for level in Level::available() {
        let (name, arguments) = &jobs()[3];
        compare(&place, name, arguments, level);
    }
}

#[test]
fn killed_jobs_go_on_on_any_number_of_processes() {
    let place = Place::new();
    let train =
        |out: &str| format!("train moons {SMALL} --fixed-steps 4 --updates 400 --plots none --out {out}");
    assert!(place.alone(&train("whole")).output().unwrap().status.success());
    let mut state = std::process::id() as usize;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let kills = if is_short() { 3 } else { 20 };
    for kill in 0..kills {
        let ranks = [4, 2, 3][kill % 3];
        let mut job = place.ranks(ranks, &format!("{} --resume", train("parts")));
        let mut job = job.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        wait_for(&place.path("parts/model.safetensors"), &mut job);
        thread::sleep(Duration::from_millis(below(1500) as u64));
        if let Some(pid) = process(&place, below(ranks)) {
            signal(pid, "KILL");
        }
        job.wait().unwrap();
    }
    for ranks in [3, 1] {
        let output = place.ranks(ranks, &format!("{} --resume", train("parts"))).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        assert!(place.model("parts") == place.model("whole"), "{ranks} ranks");
    }
}

#[test]
fn a_process_that_is_stopped_is_named_and_the_run_is_saved() {
    if is_short() {
        return;
    }
    let place = Place::new();
    let arguments = format!("train moons {SMALL} --fixed-steps 4 --updates 100000 --plots none --out run");
    let mut job = place.ranks(3, &arguments).spawn().unwrap();
    wait_for(&place.path("run/model.safetensors"), &mut job);
    thread::sleep(Duration::from_secs(3));
    let pid = process(&place, 1).expect("rank 1 runs");
    signal(pid, "STOP");
    let since = Instant::now();
    // Open MPI waits for the stopped process until it continues and can be ended.
    thread::spawn(move || {
        thread::sleep(Duration::from_secs(75));
        signal(pid, "CONT");
    });
    let output = job.wait_with_output().unwrap();
    let printed = text(&output);
    assert!(!output.status.success() && since.elapsed() < Duration::from_secs(120), "{printed}");
    assert!(printed.contains("rank 1 (") && printed.contains("did not answer within 60 s"), "{printed}");
    assert!(!printed.contains("rank 2 ("), "rank 2 has answered: {printed}");
    assert!(printed.contains("the run is saved"), "{printed}");
    assert!(place.alone("info run").output().unwrap().status.success());
}

#[test]
fn other_data_options_and_programs_are_named_before_anything_is_written() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_flowline");
    let other = place.path("other");
    fs::write(&other, [fs::read(program).unwrap(), vec![0]].concat()).unwrap();
    fs::set_permissions(&other, fs::metadata(program).unwrap().permissions()).unwrap();
    let train = |data: &str| format!("train {data} {SMALL} --fixed-steps 4 --updates 3 --out run");
    let (moons, circles, seed) = (train("moons"), train("circles"), format!("{} --seed 5", train("moons")));
    let portable = format!("FLOWLINE_LEVEL=portable {program} {moons}");
    let mut jobs = vec![
        ("data", [(1, program, &*moons), (1, program, &*circles)]),
        ("--seed", [(1, program, &*moons), (1, program, &*seed)]),
        ("executable", [(1, program, &*moons), (1, other.to_str().unwrap(), &*moons)]),
    ];
    if Level::detect() > Level::Portable {
        jobs.push(("set of instructions (FLOWLINE_LEVEL)", [(1, program, &*moons), (1, "env", &*portable)]));
    }
    for (what, parts) in jobs {
        let output = place.mpirun(&parts).output().unwrap();
        let printed = text(&output);
        assert!(!output.status.success(), "{what}: {printed}");
        assert!(printed.contains("rank 1 (") && printed.contains(&format!("{what} differs")), "{printed}");
        assert!(!place.path("run").exists(), "{what}");
    }
}

#[test]
fn commands_that_share_no_work_refuse_to_run_in_parallel() {
    let place = Place::new();
    let output = place.ranks(2, "sample latest").output().unwrap();
    assert!(
        !output.status.success() && text(&output).contains("only `train` shares its work"),
        "{}",
        text(&output)
    );
    let output = place.ranks(3, "train moons --updates 3 --shards 2 --out run").output().unwrap();
    assert!(text(&output).contains("give --shards N with N of at least 3"), "{}", text(&output));
}
