//! The binary `areo-peers`: Areo and other stores side by side, each through its usual client.

mod args;
mod cql;
mod etcd;
mod redis;
mod s3;
mod show;
mod stores;

use areo::exit::{Failure, Outcome};
use areo::output::Output;
use areo::program::{self, WatchMode};
use areo::session::{self, Session};
use areo::{progress, watch};
use areo_bench::peers::{self, Options, Stage, Watch};
use areo_bench::target::Answer;
use areo_lab::shared::{create, write};
use areo_telemetry::{Recorder, SpanRecord, admin, view};
use args::Cli;
use std::process::ExitCode;
use std::time::Duration;
use stores::Stores;

/// Name of the program.
const NAME: &str = "areo-peers";
/// Timeout of an operation, unless `--timeout` is given.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of asking a server for its spans.
const PATIENCE: Duration = Duration::from_secs(10);

/// The allocator of the product, whose clients run in this process when it is measured.
#[global_allocator]
static ALLOCATOR: areo_allocator::Allocator = areo_allocator::Allocator;

fn main() -> ExitCode {
    match areo::args::parse::<Cli>(NAME) {
        // It looks at some operations by itself.
        Ok(Cli { common, compare }) => {
            program::run(NAME, common, WatchMode::Chosen, |session, recorder| {
                run(session, recorder, compare)
            })
        }
        Err(code) => code,
    }
}

fn run(session: &Session, recorder: &Recorder, mut args: args::Compare) -> Outcome {
    let out = session.out;
    // An error about them comes now.
    let csv = args.csv.take().map(create).transpose()?;
    let html = args.html.take().map(create).transpose()?;
    let stores = Stores::new(&args, session.timeout_or(TIMEOUT)?)?;
    let watch = Watch {
        recorder: recorder.clone(),
        ask: Box::new(remembered),
    };
    let options = args.options(stores.names.clone(), watch)?;
    announce(out, &options, args.servers);
    let bar = progress::count(out, "starting", options.measurements());
    let observe = |stage| match stage {
        Stage::Starting(target) => bar.set_message(format!("starting {target}")),
        Stage::Filling(target) => bar.set_message(format!("filling {target}")),
        Stage::Measuring(done, target) => {
            bar.set_position(done);
            bar.set_message(format!("measuring {target}"));
        }
        Stage::Watching(target) => {
            bar.set_position(options.measurements());
            bar.set_message(format!("watching {target}"));
        }
        Stage::Killing(target) => bar.set_message(format!("killing a member of {target}")),
        Stage::Limits => bar.set_message("measuring the machine"),
    };
    let work = async {
        let start = async |name| stores.start(name).await;
        let done = peers::run(&options, start, observe).await;
        done.map_err(|error| Failure::other(format!("the comparison could not be made: {error}")))
    };
    let report = session::run(work, "");
    bar.finish_and_clear();
    let report = report?;
    for about in &report.targets {
        if let Some(warning) = etcd::outdated(about) {
            out.note(&warning);
        }
    }
    if let Some((path, file)) = csv {
        show::csv(&report, file).map_err(|error| Failure::file("write", &path, &error))?;
    }
    write([(html, &view::page(&report))])?;
    match out.json {
        true => out.object(&report)?,
        false => show::tables(out, &report)?,
    }
    show::judge(&report)
}

fn announce(out: Output, options: &Options, servers: u8) {
    let names: Vec<&str> = options.targets.iter().map(|target| target.word()).collect();
    out.note(&format!(
        "seed {}: {} with {servers} servers each, {} measurements of {:.1} s",
        options.seed,
        names.join(", "),
        options.measurements(),
        (options.time + options.warm_up).as_secs_f64(),
    ));
}

/// The spans of operations that have ended since `since`, as a server remembers them.
fn remembered(admin: String, since: u64) -> Answer<'static, Vec<SpanRecord>, String> {
    Box::pin(async move {
        let lines = admin::get(&admin, &format!("/traces/since/{since}"), PATIENCE).await;
        lines
            .map(|lines| watch::parse(&lines))
            .map_err(|error| error.to_string())
    })
}
