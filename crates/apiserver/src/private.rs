//! Files and folders that nobody else may read, not even for the moment in which they are made.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Makes a folder that is not there yet.
pub fn make_folder(path: &Path) -> io::Result<()> {
    make(path, false)
}

/// Makes a folder and those that it is in, where they are missing.
pub fn make_folders(path: &Path) -> io::Result<()> {
    make(path, true)
}

fn make(path: &Path, recursive: bool) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(recursive);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Writes a new file. `create_new` follows no link and opens nothing that somebody else has put there; the mode counts from the
/// first moment.
pub fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(content)?;
    // Or a crash of the machine could leave the new name with nothing in it.
    file.sync_all()
}
