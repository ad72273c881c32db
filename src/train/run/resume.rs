//! Resuming: whether the folder holds a run, and whether it is the requested one.
//!
//! This module compares the checkpoint with options, configuration and frames of the data. An error names the
//! first difference and both values. If the checkpoint matches, its header and state are returned, and the
//! session continues the run.

use super::{RunInfo, Trainer};
use crate::data::{Points, SamplingRule};
use crate::error::{Error, Result};
use crate::eval::Frames;
use crate::io::run::{RunFolder, check_lost, holds_run};
use crate::io::{Checkpoint, IoError, listed, read_checkpoint};
use crate::tensor::{Key, Tree};
use crate::train::agree::difference;
use crate::train::data::Prepared;
use crate::train::state::{Stored, TrainState};
use crate::train::{
    Given, ImageFrame, MODEL_FILE, Parts, TrainConfig, TrainError, TrainOptions, TrainingData, step,
};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The remedy when a run cannot be resumed.
pub(in crate::train) const RESTART: &str = "`restart` moves the run aside and starts again";

impl Trainer<'_> {
    /// The checkpoint of a folder, if there is one to resume.
    pub(super) fn find(&self, folder: &RunFolder) -> Result<Option<Checkpoint<RunInfo>>> {
        if self.restart && holds_run(folder.path()) {
            return Ok(None);
        }
        let path = folder.file(MODEL_FILE);
        let unusable = |cause: String| Error::from(TrainError::Unusable { cause, remedy: RESTART });
        match read_checkpoint::<RunInfo>(&path) {
            Ok(checkpoint) if checkpoint.header.run.is_empty() => Err(unusable(format!(
                "{} was written by an earlier version of flowline (format 1); it can be sampled and plotted, but not resumed",
                path.display()
            ))),
            Ok(checkpoint) if checkpoint.header.parts.is_none() => Err(unusable(format!(
                "{} was written by an earlier version of flowline, without a test part; it can be sampled and plotted, but not resumed",
                path.display()
            ))),
            Ok(checkpoint) => Ok(Some(checkpoint)),
            Err(IoError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                check_lost(folder.path())?;
                Ok(None)
            }
            Err(other) => Err(TrainError::unusable(&other.into(), RESTART).into()),
        }
    }

    /// The header and the state of the run to resume, if it matches.
    pub(super) fn resume(
        &mut self,
        checkpoint: Checkpoint<RunInfo>,
        prepared: &mut Prepared,
        (options, config): (&TrainOptions, &TrainConfig),
    ) -> Result<(RunInfo, TrainState)> {
        let header = checkpoint.header.clone();
        let folder = self.folder.clone().expect("invariant: a checkpoint lies in a folder");
        // The image is read with the run's own rule.
        let rule = |frames: &Frames| frames.image.as_ref().map_or(SamplingRule::Default, |image| image.rule);
        if rule(&prepared.frames) != rule(&header.frames) {
            let rule = rule(&header.frames);
            self.data = self.data.clone().with_rule(rule)?;
            *prepared = self.data.prepare(&header.config, None)?;
        }
        // Other data may have another dimension, which changes the configuration, so data come before options.
        check_data(&folder, &self.data, &header, prepared)?;
        if self.flow.is_some() {
            compare(&folder, "time_limit", &header.options.time_limit, &options.time_limit)?;
            compare(&folder, "config", &header.config, &as_far(config.clone(), &header))?;
        } else {
            options.resume(&header.options, &header.config, self.data.shape(), &folder)?;
        }
        if let (None, Some(config)) = (&self.flow, &self.config) {
            let asked = config.clone().with(&header.options);
            compare(&folder, "config", &header.config, &as_far(asked, &header))?;
        }
        let flow = header.config.model.build_like(checkpoint.num_elements())?;
        let key = Key::new(config.seed);
        let like = step::begin(&header.config, flow, &key);
        let state = checkpoint.into_tree(&Stored::of(&like, prepared.pixels()))?.state();
        if self.flow.is_some() {
            compare(&folder, "key", &key.leaves()[0].to_vec(), &state.key.leaves()[0].to_vec())?;
        }
        let of = match header.options.time_limit {
            Some(_) => String::new(),
            None => format!(" of {}", header.config.updates()),
        };
        (self.on_note)(&format!("resuming after update {}{of}", state.update.item()));
        Ok((header, state))
    }
}

/// The configuration with the fit of the run; under a time limit, with the numbers of updates that the run has made.
fn as_far(config: TrainConfig, header: &RunInfo) -> TrainConfig {
    let config = config.with_fit_of(&header.config);
    match header.options.time_limit {
        Some(_) => config.with_updates_of(&header.config),
        None => config,
    }
}

/// Refuses to resume a run on other data.
fn check_data(folder: &Path, data: &TrainingData, header: &RunInfo, asked: &Prepared) -> Result<()> {
    let (folder, name, parts) = (folder.to_owned(), data.name(), asked.parts);
    let (was, asked) = (&header.frames, &asked.frames);
    match (&was.points, &asked.points, &was.image, &asked.image) {
        (None, None, Some(was), Some(asked)) if was.fingerprint != asked.fingerprint => {
            let size = |frame: &ImageFrame| {
                format!("{} x {} pixels, hash {}", frame.width, frame.height, frame.fingerprint)
            };
            let (was, asked) = (size(was), size(asked));
            Err(TrainError::OtherImage { folder, name, was, asked }.into())
        }
        _ if fingerprint(was) == fingerprint(asked) => check_parts(folder, header, parts),
        _ => {
            let facts = [facts(was, header.parts), facts(asked, Some(parts))];
            let without = |points: &Points| format!("{:016x}", points.fingerprint());
            let difference = match (data, &was.points) {
                (TrainingData::Points(points, Given { validation: Some(_), .. }), Some(was))
                    if was.fingerprint == without(points) =>
                {
                    "that run has no `validation`".to_owned()
                }
                _ => {
                    let [was, asked] = &facts;
                    let found = was.iter().zip(asked).find(|(was, asked)| was != asked);
                    let (was, asked) = found.expect("invariant: other data have another hash");
                    format!("{}: {} in that run, {} now", was.0, was.1, asked.1)
                }
            };
            let of_images = || was.images.as_ref().map(|images| images.name.clone());
            let was = was.points.as_ref().map(|points| points.name.clone()).or_else(of_images);
            let was = was.unwrap_or_else(|| "an image".to_owned());
            Err(TrainError::OtherData { folder, name, was, difference }.into())
        }
    }
}

/// The hash of points or of a set of images.
fn fingerprint(frames: &Frames) -> Option<&str> {
    let of_images = frames.images.as_ref().map(|images| &images.fingerprint);
    frames.points.as_ref().map(|points| &points.fingerprint).or(of_images).map(String::as_str)
}

/// What distinguishes data, in the order of messages.
fn facts(frames: &Frames, parts: Option<Parts>) -> [(&'static str, String); 5] {
    let (points, images) = (frames.points.as_ref(), frames.images.as_ref());
    let kind = match (points, images) {
        (Some(_), _) => "points",
        (None, Some(_)) => "a set of images",
        (None, None) => "an image",
    };
    let columns = points.map_or_else(String::new, |points| listed(&points.columns, "columns"));
    let size =
        images.map_or_else(String::new, |set| format!("{} x {} x {}", set.width, set.height, set.channels));
    let rows = parts.map_or_else(String::new, |parts| parts.to_string());
    let hash = fingerprint(frames).unwrap_or_default().to_owned();
    [
        ("kind", kind.to_owned()),
        ("columns", columns),
        ("size", size),
        ("rows", rows),
        ("hash of the values", hash),
    ]
}

/// Refuses to resume a run with another split of the same data.
fn check_parts(folder: PathBuf, header: &RunInfo, asked: Parts) -> Result<()> {
    match header.parts {
        Some(was) if was != asked => Err(TrainError::OtherParts { folder, was, asked }.into()),
        _ => Ok(()),
    }
}

/// Refuses to resume a run with other values, and names the first that differs.
fn compare<T: Serialize>(folder: &Path, name: &str, was: &T, asked: &T) -> Result<()> {
    let value = |x: &T| serde_json::to_value(x).expect("invariant: plain values with text keys");
    match difference(name.to_owned(), &value(was), &value(asked)) {
        None => Ok(()),
        Some((option, was, asked)) => {
            Err(Error::from(TrainError::OtherOption { folder: folder.to_owned(), option, was, asked }))
        }
    }
}
