//! `areo bench report`: a page drawn again, from what was printed.

use super::{peers, wide_area};
use crate::args::DrawReport;
use crate::exit::{Failure, Outcome};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;

pub(super) fn draw(args: &DrawReport) -> Outcome {
    let (path, shown) = (&args.file, args.file.display());
    let text = fs::read_to_string(path);
    let text = text.map_err(|error| Failure::file("read", path, &error))?;
    let drawn = page(&text).map_err(|error| {
        Failure::other(format!(
            "{shown} is not what `areo bench peers --json` or `areo bench wide-area --json` prints: {error}"
        ))
    })?;
    let written = fs::write(&args.html, drawn);
    written.map_err(|error| Failure::file("write", &args.html, &error))
}

fn page(text: &str) -> serde_json::Result<String> {
    fn read<R: DeserializeOwned>(value: Value) -> serde_json::Result<R> {
        serde_json::from_value(value)
    }
    let value: Value = serde_json::from_str(text)?;
    match value["report"].as_str() {
        Some("wide-area") => Ok(wide_area::page(&read(value)?)),
        _ => Ok(peers::page(&read(value)?)),
    }
}
