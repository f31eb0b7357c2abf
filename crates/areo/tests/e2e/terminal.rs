//! Commands on a terminal of their own.

use crate::cluster::Cluster;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use tempfile::TempDir;

/// A line of a shell that runs on a terminal.
pub(crate) struct Terminal {
    folder: TempDir,
    script: Child,
}

impl Terminal {
    /// Starts the line, in which `$A` is the program on this cluster.
    pub(crate) fn start(cluster: &Cluster, line: &str) -> Terminal {
        Terminal::typing(cluster, line, b"")
    }

    /// Starts the line, and types this.
    pub(crate) fn typing(cluster: &Cluster, line: &str, typed: &[u8]) -> Terminal {
        let folder = tempfile::tempdir_in(cluster.folder()).expect("there is room for a directory");
        let file = folder.path().join("line");
        fs::write(&file, line).expect("there is room for a line");
        let program = format!("{} --cluster {}", crate::program(), cluster.file());
        let stdin = match typed {
            b"" => Stdio::null(),
            _ => Stdio::piped(),
        };
        let mut script = crate::command::of("script")
            .args(["-qefc", &format!("bash {}", file.display())])
            .arg(typescript(&folder))
            .current_dir(folder.path())
            .env("A", program)
            .env("TERM", "xterm")
            .env("XDG_STATE_HOME", cluster.folder())
            .env("XDG_CACHE_HOME", cluster.folder())
            .env_remove("NO_COLOR")
            .stdin(stdin)
            .stdout(Stdio::null())
            .spawn()
            .expect("the program starts");
        if let Some(keyboard) = &mut script.stdin {
            let written = keyboard.write_all(typed);
            written.expect("a pipe has room for a line");
        }
        Terminal { folder, script }
    }

    /// All that the line has written so far.
    pub(crate) fn shown(&self) -> String {
        let shown = fs::read(typescript(&self.folder)).unwrap_or_default();
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// All that the line writes until it ends.
    pub(crate) fn end(mut self) -> String {
        self.script.wait().expect("it is our own");
        let shown = self.shown();
        crate::command::secrets::check_printed(shown.as_bytes());
        shown
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself. The line is hung up on.
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

fn typescript(folder: &TempDir) -> PathBuf {
    folder.path().join("typescript")
}
