//! Clocks and memory.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use windlass_reference::Error;

/// The seconds of CPU that this thread has taken, which is all of the process: the runtime has no other.
pub fn thread_cpu() -> Result<f64, Error> {
    // The kernel adds up when a thread is switched; without this the figure is up to a tick old.
    std::thread::yield_now();
    schedstat(Path::new("/proc/thread-self/schedstat"))
}

/// The seconds of CPU that all threads of these processes have taken.
pub fn process_cpu(pids: &[u32]) -> Result<f64, Error> {
    let mut sum = 0.0;
    for pid in pids {
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            // A thread may end while they are counted.
            sum += schedstat(&task?.path().join("schedstat")).unwrap_or_default();
        }
    }
    Ok(sum)
}

fn schedstat(path: &Path) -> Result<f64, Error> {
    let text = fs::read_to_string(path)?;
    let nanoseconds = text.split_whitespace().next().ok_or("the kernel counts no CPU time")?;
    Ok(nanoseconds.parse::<f64>()? / 1e9)
}

/// Resident memory of a process, in bytes; `self` is this one.
pub fn resident(process: &str) -> Result<f64, Error> {
    of_status(process, "VmRSS")
}

/// The part of it that is its own: without pages of its program, which a file has.
pub fn resident_own(process: &str) -> Result<f64, Error> {
    of_status(process, "RssAnon")
}

/// The most that it ever was.
pub fn resident_peak(process: &str) -> Result<f64, Error> {
    of_status(process, "VmHWM")
}

fn of_status(process: &str, field: &str) -> Result<f64, Error> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let found = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let line = found.ok_or_else(|| format!("the kernel tells no {field}"))?;
    let kilobytes: f64 = line.trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024.0)
}

/// Resident memory of several.
pub fn resident_together(pids: &[u32]) -> Result<f64, Error> {
    pids.iter().map(|pid| resident(&pid.to_string())).sum()
}

/// Pins whoever asks to one core, and servers to another, where `taskset` is there to do it.
pub fn pin(servers: &[u32]) {
    let pin = |pid: u32, core: &str| {
        let mut taskset = Command::new("taskset");
        taskset.args(["-a", "-p", "-c", core, &pid.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
        // Without it the figures are noisier, not wrong.
        drop(taskset.status());
    };
    pin(std::process::id(), "0");
    for server in servers {
        pin(*server, "1");
    }
}

/// The machine, in a line.
pub fn machine() -> String {
    let field = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let value = text.lines().find(|line| line.starts_with(name)).and_then(|line| line.split_once(':'));
        value.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{}, {cores} cores, {} of memory, Linux {}",
        field("/proc/cpuinfo", "model name"),
        field("/proc/meminfo", "MemTotal"),
        kernel.trim(),
    )
}

/// How busy it is: over a minute, five and fifteen.
pub fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}
