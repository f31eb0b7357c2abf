//! `areo-lab bench report`: a page drawn again, from what was printed.

use crate::args::DrawReport;
use areo::exit::{Failure, Outcome};
use areo_telemetry::view;
use serde_json::Value;
use std::fs;

pub(super) fn draw(args: &DrawReport) -> Outcome {
    let path = &args.file;
    let text = fs::read(path).map_err(|error| Failure::file("read", path, &error))?;
    let report: Option<Value> = serde_json::from_slice(&text).ok();
    let Some(report) = report.filter(view::is_known) else {
        return Err(Failure::other(format!(
            "{} is not what `areo-peers --json`, `areo-lab paper --json` or `areo-lab bench wide-area --json` prints",
            path.display()
        )));
    };
    let page = view::page(&report);
    fs::write(&args.html, page).map_err(|error| Failure::file("write", &args.html, &error))
}
