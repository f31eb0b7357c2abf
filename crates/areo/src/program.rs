//! Running this program once more.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;

/// Where this program is.
///
/// # Errors
/// The system does not know.
pub(crate) fn path() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// A command that runs it as a server of ours: everything is said by arguments, only this process speaks to the service
/// manager, and a Ctrl-C in the terminal is for this process, which stops the others in order.
pub(crate) fn server(path: &std::path::Path) -> Command {
    let mut command = Command::new(path);
    let ours = |name: &OsString| name.to_string_lossy().starts_with("AREO_");
    for name in std::env::vars_os().map(|(name, _)| name).filter(ours) {
        command.env_remove(name);
    }
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.env_remove("NOTIFY_SOCKET");
    command
}
