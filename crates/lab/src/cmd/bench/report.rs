//! `areo-lab bench report`: a page drawn again, from what was printed.

use super::wide_area;
use crate::args::DrawReport;
use crate::cmd::paper;
use areo::exit::{Failure, Outcome};
use areo::units::show_time;
use areo_bench::page::Page;
use areo_bench::peers::Report;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::path::Path;

pub(super) fn draw(args: &DrawReport) -> Outcome {
    let (path, shown) = (&args.file, args.file.display());
    let text = fs::read_to_string(path);
    let text = text.map_err(|error| Failure::file("read", path, &error))?;
    let drawn = page(&text).map_err(|error| {
        Failure::other(format!(
            "{shown} is not what `areo-peers --json`, `areo-lab paper --json` or `areo-lab bench wide-area --json` prints: \
             {error}"
        ))
    })?;
    if let Some(html) = &args.html {
        write(html, &drawn.html())?;
    }
    if let Some(folder) = &args.svg {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        for (name, svg) in drawn.plots() {
            write(&folder.join(format!("{stem}-{name}.svg")), &svg)?;
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Outcome {
    fs::write(path, text).map_err(|error| Failure::file("write", path, &error))
}

fn page(text: &str) -> serde_json::Result<Page> {
    fn read<R: DeserializeOwned>(value: Value) -> serde_json::Result<R> {
        serde_json::from_value(value)
    }
    let value: Value = serde_json::from_str(text)?;
    match value["report"].as_str() {
        Some("wide-area") => Ok(wide_area::page(&read(value)?)),
        Some("paper") => Ok(paper::page(&read(value)?)),
        _ => {
            let report: Report = read(value)?;
            Ok(Page::of_peers(&report, &show_time(report.made_at_ms)))
        }
    }
}
