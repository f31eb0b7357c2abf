//! The files of a release: an archive with the program, its manual pages, completions, units, the licences of everything that it is built from and a list
//! of that, a Debian package, and checksums.
//!
//! Two runs of one revision with one toolchain are to make the same bytes: paths are mapped, times are those of the commit, names are sorted.

use crate::tools;
use crate::workspace::Workspace;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of cargo-deb that is built where none is on the PATH.
const CARGO_DEB: &str = "3.8.0";
/// The folder of everything that is made here.
const DIST: &str = "target/dist-files";
/// The folder in it of the files that are packed.
const FILES: &str = "files";
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];
/// Files that are copied as they are, with their names in the archive.
const COPIED: [(&str, &str); 6] = [
    ("LICENSE", "LICENSE"),
    ("README.md", "README.md"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("deploy/areo.toml", "areo.toml"),
    (
        "deploy/systemd/areo-server.service",
        "systemd/areo-server.service",
    ),
    ("deploy/systemd/areo-s3.service", "systemd/areo-s3.service"),
];

/// Builds the archive of the product.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let root = workspace.root();
    let (time, target) = (commit_time(root)?, host(root)?);
    build(workspace, &time)?;
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("areo-{version}-{target}");
    let dist = root.join(DIST);
    // Its name is that which crates/areo/Cargo.toml has for the package, and knows no version.
    let folder = dist.join(FILES);
    if dist.exists() {
        fs::remove_dir_all(&dist).map_err(cannot("empty", &dist))?;
    }
    fill(workspace, &folder)?;
    let archive = format!("{name}.tar.gz");
    pack(&dist, &name, &archive, &time)?;
    let mut files = vec![archive];
    files.extend(debian(workspace, &time)?);
    let sums = ended(Command::new("sha256sum").args(&files).current_dir(&dist))?;
    write(&dist.join("SHA256SUMS"), &sums)?;
    println!("{DIST}:\n{sums}");
    Ok(())
}

/// Compiles the program without the paths of this machine.
fn build(workspace: &Workspace, time: &str) -> Result<(), String> {
    let home = std::env::var("CARGO_HOME").or_else(|_| {
        let home = std::env::var("HOME").map_err(|_| "neither CARGO_HOME nor HOME is set");
        home.map(|home| format!("{home}/.cargo"))
    })?;
    let root = workspace.root().display();
    let flags = format!("--remap-path-prefix={root}=/areo --remap-path-prefix={home}=/cargo");
    let environment = [("RUSTFLAGS", flags.as_str()), ("SOURCE_DATE_EPOCH", time)];
    let arguments = ["build", "--profile", "dist", "--locked", "-p", "areo"];
    workspace.cargo(&arguments, &environment)
}

/// Everything that is in the archive.
fn fill(workspace: &Workspace, folder: &Path) -> Result<(), String> {
    let root = workspace.root();
    let program = root.join("target/dist/areo");
    for made in ["bin", "man", "completions", "systemd"] {
        let made = folder.join(made);
        fs::create_dir_all(&made).map_err(cannot("make", &made))?;
    }
    copy(&program, &folder.join("bin/areo"))?;
    for (from, to) in COPIED {
        copy(&root.join(from), &folder.join(to))?;
    }
    ended(Command::new(&program).arg("manual").arg(folder.join("man")))?;
    for shell in SHELLS {
        let script = ended(Command::new(&program).args(["completion", shell]))?;
        write(
            &folder.join("completions").join(format!("areo.{shell}")),
            &script,
        )?;
    }
    let parts = parts(workspace)?;
    write(&folder.join("LICENSES-OF-PARTS"), &licences(&parts)?)?;
    let list = serde_json::to_string_pretty(&bill_of_materials(&parts));
    let list = list.map_err(|error| error.to_string())?;
    write(&folder.join("sbom.cdx.json"), &list)
}

/// A crate that the program is built from.
struct Part {
    name: String,
    version: String,
    licence: String,
    folder: PathBuf,
}

/// The crates that are linked into the program, without our own.
fn parts(workspace: &Workspace) -> Result<Vec<Part>, String> {
    let tree = ["tree", "--locked", "-p", "areo", "--edges", "normal"];
    let format = ["--prefix", "none", "--no-dedupe", "--format", "{p}"];
    let mut asking = Command::new(workspace.cargo_path());
    asking.current_dir(workspace.root()).args(tree).args(format);
    let lines = ended(&mut asking)?;
    let wanted: BTreeSet<(&str, &str)> = lines.lines().filter_map(named).collect();
    let metadata = workspace.whole_metadata()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages = metadata["packages"]
        .as_array()
        .ok_or("cargo metadata lists no packages")?;
    let mut parts: BTreeMap<(String, String), Part> = BTreeMap::new();
    for package in packages
        .iter()
        .filter(|package| package["source"].is_string())
    {
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        if !wanted.contains(&(name.as_str(), version.as_str())) {
            continue;
        }
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        let part = Part {
            licence: text(&package["license"]),
            folder: manifest.parent().map(Path::to_path_buf).unwrap_or_default(),
            name: name.clone(),
            version: version.clone(),
        };
        parts.insert((name, version), part);
    }
    Ok(parts.into_values().collect())
}

/// Name and version of a line such as `bytes v1.10.0` or `areo v0.1.0 (/areo)`.
fn named(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

/// The licences of all parts, each text once.
fn licences(parts: &[Part]) -> Result<String, String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut all = String::from("Areo is built from these crates:\n\n");
    for part in parts {
        let title = format!("{} {}", part.name, part.version);
        let _ = writeln!(all, "{title}: {}", part.licence);
        let entries = fs::read_dir(&part.folder).map_err(cannot("list", &part.folder))?;
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.is_file() && is_licence(file));
        files.sort();
        for file in files {
            let text = fs::read(&file).map_err(cannot("read", &file))?;
            let text = String::from_utf8_lossy(&text).trim().to_owned();
            texts.entry(text).or_default().push(title.clone());
        }
    }
    for (text, of) in texts {
        let _ = write!(all, "\n{}\n{}\n\n{text}\n", "-".repeat(80), of.join(", "));
    }
    Ok(all)
}

fn is_licence(file: &Path) -> bool {
    let name = file
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_uppercase();
    let words = [
        "LICENSE",
        "LICENCE",
        "COPYING",
        "NOTICE",
        "COPYRIGHT",
        "UNLICENSE",
    ];
    words.iter().any(|word| name.starts_with(word))
}

/// The list of parts, in the form of `CycloneDX` 1.5.
fn bill_of_materials(parts: &[Part]) -> Value {
    let component = |part: &Part| {
        json!({
            "type": "library",
            "name": part.name,
            "version": part.version,
            "purl": format!("pkg:cargo/{}@{}", part.name, part.version),
            "licenses": [{"expression": part.licence.replace('/', " OR ")}],
        })
    };
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {
            "type": "application",
            "name": "areo",
            "version": env!("CARGO_PKG_VERSION"),
            "licenses": [{"license": {"id": "Apache-2.0"}}],
        }},
        "components": parts.iter().map(component).collect::<Vec<_>>(),
    })
}

/// A folder as a compressed archive.
fn pack(dist: &Path, name: &str, archive: &str, time: &str) -> Result<(), String> {
    let tar = format!("{name}.tar");
    let time = format!("--mtime=@{time}");
    let sorted = [
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mode=u+rw,go=rX",
    ];
    let mut packing = Command::new("tar");
    let renamed = format!("--transform=s,^{FILES},{name},");
    packing
        .current_dir(dist)
        .args(sorted)
        .args([&*time, &*renamed, "-cf", &*tar, FILES]);
    ended(&mut packing)?;
    let mut compressing = Command::new("gzip");
    ended(
        compressing
            .current_dir(dist)
            .args(["-9", "--no-name", &tar]),
    )?;
    assert!(dist.join(archive).is_file(), "gzip names its output so");
    Ok(())
}

/// The Debian package; none where there is no `dpkg-deb`.
fn debian(workspace: &Workspace, time: &str) -> Result<Option<String>, String> {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        println!("no Debian package: there is no dpkg-deb here");
        return Ok(None);
    }
    let program = tools::program(workspace, "cargo-deb", CARGO_DEB)?;
    let output = workspace.root().join(DIST);
    let mut packing = Command::new(program);
    packing
        .current_dir(workspace.root())
        .env("SOURCE_DATE_EPOCH", time);
    packing.args([
        "--no-build",
        "--no-strip",
        "--locked",
        "-p",
        "areo",
        "--profile",
        "dist",
        "-o",
    ]);
    let made = ended(packing.arg(&output))?;
    let path = made.lines().last().unwrap_or_default();
    let name = Path::new(path)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    name.map(Some)
        .ok_or_else(|| "cargo-deb names no package".into())
}

/// Seconds since 1970 of the commit that is built.
fn commit_time(root: &Path) -> Result<String, String> {
    let mut git = Command::new("git");
    let time = ended(git.current_dir(root).args(["log", "-1", "--format=%ct"]))?;
    Ok(time.trim().to_owned())
}

/// The target of the compiler.
fn host(root: &Path) -> Result<String, String> {
    let said = ended(Command::new("rustc").current_dir(root).arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| "rustc names no host".into())
}

/// The output of a program that succeeded.
fn ended(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    let output = output.map_err(|error| format!("cannot start {name}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} failed: {}", said.trim()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(cannot("copy", from))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(cannot("write", path))
}

fn cannot(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> String {
    let sentence = format!("cannot {what} {}", path.display());
    move |error| format!("{sentence}: {error}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn lines_of_the_tree_name_crates() {
        assert_eq!(named("bytes v1.10.0"), Some(("bytes", "1.10.0")));
        assert_eq!(
            named("areo v0.1.0 (/areo/crates/areo)"),
            Some(("areo", "0.1.0"))
        );
        assert_eq!(named(""), None);
    }

    #[test]
    fn each_text_of_a_licence_stands_once_with_all_whose_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let part = |name: &str, text: &str| {
            let own = folder.path().join(name);
            fs::create_dir(&own).unwrap();
            fs::write(own.join("LICENSE-MIT"), text).unwrap();
            fs::write(own.join("README"), "not this").unwrap();
            Part {
                name: name.into(),
                version: "1.0.0".into(),
                licence: "MIT".into(),
                folder: own,
            }
        };
        let parts = [
            part("one", "free\n"),
            part("two", "free"),
            part("three", "as air"),
        ];
        let all = licences(&parts).unwrap();
        assert!(all.contains("one 1.0.0, two 1.0.0\n\nfree\n"), "{all}");
        assert!(
            all.contains("three 1.0.0\n\nas air\n") && !all.contains("not this"),
            "{all}"
        );
        let list = bill_of_materials(&parts);
        assert_eq!(list["components"][0]["purl"], "pkg:cargo/one@1.0.0");
        assert_eq!(list["components"].as_array().unwrap().len(), 3);
    }
}
