//! A program that runs for as long as a value lives.

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::Error;

/// It ends with this value.
pub(crate) struct Process(Child);

impl Process {
    /// Starts a program in a folder, with a log that has its name.
    pub(crate) fn start(program: &Path, flags: &[String], folder: &Path) -> Result<Self, Error> {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let log = File::options().create(true).append(true).open(folder.join(format!("{name}.log")))?;
        let child = Command::new(program)
            .args(flags)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .map_err(|why| format!("{}: {why}", program.display()))?;
        Ok(Self(child))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> io::Result<bool> {
        Ok(self.0.try_wait()?.is_some())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing it holds is worth keeping: no orderly end.
        if self.0.kill().is_ok() {
            drop(self.0.wait());
        }
    }
}

/// A port that was free a moment ago: these programs cannot take one themselves and say which.
pub(crate) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
