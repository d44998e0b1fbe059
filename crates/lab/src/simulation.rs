//! Reads a lab file as a scenario: all of its tables except `[serve]`.

use std::path::Path;

use dashpot_daemon::Registry;
use dashpot_engine::Duration;
use dashpot_engine::inject::{GroupId, RuleSpec};
use dashpot_rules::{Injection, ParseError, VolumeSpec, parse_seed, parse_span, parse_wait};
use dashpot_sim::Simulation;
use dashpot_sim::scenario::{DiskSpec, Scenario, WorkloadSpec};

use crate::change::{Misread, read_changes};
use crate::file::{FILE_KEYS, parse_toml, read_disk};
use crate::joined::read_joined;
use crate::key::{Key, names};
use crate::model::read_model;
use crate::origin::Origin;
use crate::pool::Disks;
use crate::section::Section;
use crate::staged::Staged;
use crate::targets::Targets;
use crate::workload::read_workload;
use crate::{check_ranges, read_file};

pub(crate) const SIM_KEYS: [Key; 4] = [
    Key {
        name: "lasts",
        kind: "time",
        example: "\"130s\"",
        default: "\"1m\"",
        meaning: "When the simulation ends; `--for` overrides it.",
    },
    Key {
        name: "warmup",
        kind: "time",
        example: "\"30s\"",
        default: "\"0s\"",
        meaning: "The latencies of the summary leave out calls that begin before this time; `--warmup` overrides it.",
    },
    Key {
        name: "seed",
        kind: "number",
        example: "7",
        default: "1",
        meaning: "Seed of all draws; `--seed` overrides it.",
    },
    Key {
        name: "sample",
        kind: "time",
        example: "\"100ms\"",
        default: "1/600 of the run",
        meaning: "How often the state of the pools and disks is noted for `--chart`.",
    },
];

/// Groups of rules, in the order in which they are armed.
type Groups = Vec<(GroupId, Vec<RuleSpec>)>;

/// A lab as a simulation, and the facts about its rules that the engine does not know.
#[derive(Debug)]
pub struct SimLab {
    /// The disks, pools and workloads of the simulation.
    pub scenario: Scenario,
    /// All rules that the lab arms at any time.
    pub rules: Registry,
    origin: Origin,
}

impl SimLab {
    /// Begins the simulation. A refusal names the line of the lab.
    pub fn begin(self) -> Result<Simulation, ParseError> {
        let begun = Simulation::new(self.scenario);
        begun.map_err(|error| self.origin.refusal(&error))
    }

    /// Warnings about the lab, each with the line that it is about.
    pub fn warnings(&self) -> Vec<ParseError> {
        self.origin.warnings(&self.scenario)
    }
}

/// Reads a lab as a simulation.
pub fn load_sim_lab(path: &Path) -> Result<SimLab, ParseError> {
    load(path, None)
}

/// Like [`load_sim_lab`], with a scenario on the lab's disks.
pub fn load_sim_lab_with(path: &Path, staged: &Staged) -> Result<SimLab, ParseError> {
    load(path, Some(staged))
}

fn load(path: &Path, staged: Option<&Staged>) -> Result<SimLab, ParseError> {
    let text = read_file(path)?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let mut lab = read(&text, directory, staged).map_err(|misread| match misread {
        Misread::Lab(error) => ParseError::new(format!("{}:{error}", path.display())),
        Misread::Scenario(error) => error,
    })?;
    lab.origin.path = path.to_owned();
    Ok(lab)
}

/// Reads a lab with this text, and with traces in `directory`. An error begins with the number of
/// its line.
pub(crate) fn read(
    text: &str,
    directory: &Path,
    staged: Option<&Staged>,
) -> Result<SimLab, Misread> {
    let table = parse_toml(text)?;
    let file = Section::of_file(text, table.get_ref());
    file.refuse_unknown(&FILE_KEYS)?;
    let mut registry = Registry::default();
    let mut origin = Origin::default();
    let disks = read_disks(&file, &mut registry, &mut origin.disks)?;
    let mut known = Disks::new(disks.iter().map(|disk| (disk.name.as_str(), disk.size)));
    let joined = read_joined(&file, &mut known)?;
    (origin.pools, origin.volumes) = joined.places;
    let (pools, volumes) = (joined.pools, joined.volumes);
    let targets = targets(&known, &volumes);
    let workloads = read_workloads(&file, &targets, directory, &mut origin.workloads)?;
    let mut rules = registry.clone();
    let sim = file.table("sim")?;
    let sim = sim.map(|table| file.below("[sim]", file.span_of("sim").unwrap_or_default(), table));
    let scenario = Scenario {
        seed: 1,
        pools,
        disks,
        volumes,
        workloads,
        commands: Vec::new(),
        lasts: DEFAULT_LASTS,
        warmup: Duration::ZERO,
        check: false,
        sample_every: None,
    };
    let mut scenario = match sim {
        Some(sim) => with_settings(scenario, &sim)?,
        None => scenario,
    };
    let staged = staged.map(|staged| (staged, staged.lasts.unwrap_or(scenario.lasts)));
    let (disks, pools) = (&scenario.disks, &scenario.pools);
    let changes = read_changes(&file, disks, pools, registry, &mut rules, staged)?;
    (scenario.commands, origin.changes) = (changes.commands, changes.places);
    Ok(SimLab {
        scenario,
        rules,
        origin,
    })
}

fn read_workloads(
    file: &Section<'_>,
    targets: &Targets<'_>,
    directory: &Path,
    places: &mut Vec<String>,
) -> Result<Vec<WorkloadSpec>, ParseError> {
    let mut workloads = Vec::new();
    let mut threads = 0;
    for (name, section) in file.named("workload")? {
        places.push(section.place());
        let workload = read_workload(&section, name, targets, directory)?;
        threads += u64::from(workload.threads());
        if threads > THREADS_MAX {
            let why = format!("{threads} with earlier workloads: at most {THREADS_MAX} in a lab");
            return section.refuse("threads", &why);
        }
        workloads.push(workload);
    }
    Ok(workloads)
}

fn read_disks(
    file: &Section<'_>,
    registry: &mut Registry,
    places: &mut Vec<String>,
) -> Result<Vec<DiskSpec>, ParseError> {
    let mut disks = Vec::new();
    for (name, section) in file.named("disk")? {
        places.push(section.place());
        let disk = read_disk(&section, name)?;
        let misplaced = |why: String| section.error(section.start(), "", &why);
        check_ranges(&disk).map_err(|error| misplaced(error.to_string()))?;
        let rules = arm(registry, disks.len(), disk.injections).map_err(|why| {
            section.error(section.span_of("rules").unwrap_or_default(), "rules", &why)
        })?;
        let model = read_model(&section)?;
        disks.push(DiskSpec {
            size: disk.config.size.ok_or_else(|| {
                misplaced("no size: a simulation opens no file; add size = \"1G\"".to_owned())
            })?,
            name: disk.config.name,
            model,
            rotational: disk.config.rotational,
            rules,
        });
    }
    if disks.is_empty() {
        return Err(ParseError::new("1: the lab has no disk: add [disk.NAME]"));
    }
    Ok(disks)
}

/// Gives the rules of a disk the ids and groups that a daemon would give them.
fn arm(registry: &mut Registry, disk: usize, injections: Vec<Injection>) -> Result<Groups, String> {
    let mut groups = Vec::new();
    for injection in injections {
        let plan = registry.plan(disk, injection, None);
        let plan = plan.map_err(|refusal| refusal.to_string())?;
        let rules = plan.rules().into_iter().map(|(_, spec)| spec);
        groups.extend(plan.group().map(|group| (group, rules.collect())));
        registry.commit(plan);
    }
    Ok(groups)
}

fn targets<'a>(disks: &'a Disks<'_>, volumes: &'a [VolumeSpec]) -> Targets<'a> {
    let disk = |(at, (name, size)): (usize, (&&'a str, &u64))| {
        (*name, *size, disks.pools.get(&at).map(String::as_str))
    };
    Targets {
        disks: disks
            .names
            .iter()
            .zip(&disks.sizes)
            .enumerate()
            .map(disk)
            .collect(),
        volumes: volumes
            .iter()
            .map(|volume| (volume.name.as_str(), volume.size))
            .collect(),
    }
}

fn with_settings(scenario: Scenario, sim: &Section<'_>) -> Result<Scenario, ParseError> {
    sim.refuse_unknown(&names(&[&SIM_KEYS]))?;
    let lasts = sim.value("lasts", parse_span)?.unwrap_or(DEFAULT_LASTS);
    let warmup = sim.value("warmup", parse_wait)?.unwrap_or_default();
    if warmup >= lasts {
        return sim.refuse(
            "warmup",
            &format!(
                "it leaves nothing of the whole time, {lasts}: make it shorter, or make 'lasts' longer"
            ),
        );
    }
    let scenario = Scenario {
        seed: sim.value("seed", parse_seed)?.unwrap_or(scenario.seed),
        lasts,
        warmup,
        sample_every: sim.value("sample", parse_span)?,
        ..scenario
    };
    match check_samples(&scenario) {
        Ok(()) => Ok(scenario),
        Err(why) => sim.refuse("sample", &why),
    }
}

/// Refuses more samples than fit into memory.
pub fn check_samples(scenario: &Scenario) -> Result<(), String> {
    let Some(every) = scenario.sample_every else {
        return Ok(());
    };
    let lasts = scenario.lasts.as_nanos();
    let figures = (scenario.disks.len() + scenario.pools.len()) as u64;
    let most = SAMPLES_MAX.min(SAMPLED_FIGURES_MAX / figures.max(1));
    let samples = lasts / every.as_nanos().max(1);
    if samples <= most {
        return Ok(());
    }
    Err(format!(
        "'{every}' makes {samples} samples in {}, and there may be {most}: sample every {} or more",
        scenario.lasts,
        Duration::from_nanos(lasts.div_ceil(most))
    ))
}

/// The maximum number of threads in all workloads together. A thread takes 300 bytes of memory.
pub(crate) const THREADS_MAX: u64 = 1_000_000;
/// The maximum number of samples in a simulation, which is more than the width of a picture.
pub(crate) const SAMPLES_MAX: u64 = 100_000;
/// The maximum number of figures in all samples together. Each sample has a figure of up to 16 bytes for each
/// disk and each pool.
pub(crate) const SAMPLED_FIGURES_MAX: u64 = 10_000_000;

/// How long a simulation lasts by default.
const DEFAULT_LASTS: Duration = Duration::from_secs(60);

/// Reads a lab alone.
#[cfg(test)]
pub(crate) fn parse(text: &str, directory: &Path) -> Result<SimLab, ParseError> {
    read(text, directory, None).map_err(|misread| match misread {
        Misread::Lab(error) | Misread::Scenario(error) => error,
    })
}

#[cfg(test)]
#[path = "simulation_tests.rs"]
mod tests;
