//! The settings in the standard variables of OpenTelemetry. There are no others.

use crate::recorder::Sampler;

/// The protocol that spans travel by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Protocol {
    /// OTLP over HTTP/1.1, bodies in protobuf.
    Http,
    /// OTLP over gRPC.
    Grpc,
}

/// The collector that spans go to, and the protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    pub(super) protocol: Protocol,
    /// The whole address; over HTTP with the path.
    pub(super) endpoint: String,
    /// Value of the variable `OTEL_SERVICE_NAME`.
    pub(super) service: Option<String>,
    /// The most spans that wait; the rest is lost.
    pub(super) queue: usize,
}

/// A variable says something that cannot be done. Nothing is exported then.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{variable} is '{value}': {expected}")]
pub struct InvalidSetting {
    pub variable: &'static str,
    pub value: String,
    /// The values that it may have.
    pub expected: &'static str,
}

/// A variable of this process; an empty one counts as unset, as the standard says.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A source of environment variables.
struct Variables<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.trim().is_empty())
    }

    /// The first of them that is set.
    fn first(&self, names: [&'static str; 2]) -> Option<(&'static str, String)> {
        names
            .into_iter()
            .find_map(|name| Some((name, self.get(name)?)))
    }

    fn is_true(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }
}

const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const PROTOCOLS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
];
const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const SAMPLER_ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";
/// The standard's default of `OTEL_BSP_MAX_QUEUE_SIZE`.
const QUEUE: usize = 2048;

impl Settings {
    /// The settings that the variables of this process ask for; nothing unless an endpoint is set.
    ///
    /// # Errors
    /// [`InvalidSetting`].
    pub fn from_environment() -> Result<Option<Settings>, InvalidSetting> {
        Settings::read(&variable)
    }

    pub(super) fn read(
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Settings>, InvalidSetting> {
        let variables = Variables(variable);
        let off = variables.is_true("OTEL_SDK_DISABLED")
            || variables.get("OTEL_TRACES_EXPORTER").as_deref() == Some("none");
        let Some((name, endpoint)) = variables.first([TRACES_ENDPOINT, ENDPOINT]) else {
            return Ok(None);
        };
        if off {
            return Ok(None);
        }
        let protocol = protocol(&variables)?;
        let host = endpoint.strip_prefix("http://");
        if host.is_none_or(str::is_empty) {
            return Err(InvalidSetting {
                variable: name,
                value: endpoint,
                expected: "write http://HOST:PORT; TLS is not built in, a collector on this machine can speak it for you",
            });
        }
        // The general variable names the collector, the one for traces the whole address.
        let endpoint = match (protocol, name) {
            (Protocol::Http, ENDPOINT) => format!("{}/v1/traces", endpoint.trim_end_matches('/')),
            _ => endpoint,
        };
        let queue = variables.get("OTEL_BSP_MAX_QUEUE_SIZE");
        Ok(Some(Settings {
            protocol,
            endpoint,
            service: variables.get("OTEL_SERVICE_NAME"),
            queue: queue.and_then(|size| size.parse().ok()).unwrap_or(QUEUE),
        }))
    }

    /// The address that spans go to.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }
}

fn protocol(variables: &Variables<'_>) -> Result<Protocol, InvalidSetting> {
    let Some((name, protocol)) = variables.first(PROTOCOLS) else {
        return Ok(Protocol::Http);
    };
    match &*protocol {
        "http/protobuf" => Ok(Protocol::Http),
        "grpc" => Ok(Protocol::Grpc),
        _ => Err(InvalidSetting {
            variable: name,
            value: protocol,
            expected: "http/protobuf and grpc are spoken here",
        }),
    }
}

impl Sampler {
    /// The sampler that `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG` name; `None` if they are not set. An
    /// operation begins in a client, so that samplers based on a parent are equal to those that are not.
    ///
    /// # Errors
    /// [`InvalidSetting`].
    pub fn from_environment() -> Result<Option<Sampler>, InvalidSetting> {
        Sampler::read(&variable)
    }

    pub(super) fn read(
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Sampler>, InvalidSetting> {
        let variables = Variables(variable);
        let Some(sampler) = variables.get(SAMPLER) else {
            return Ok(None);
        };
        match sampler.strip_prefix("parentbased_").unwrap_or(&sampler) {
            "always_on" => return Ok(Some(Sampler::Always)),
            "always_off" => return Ok(Some(Sampler::Never)),
            "traceidratio" => {}
            _ => {
                return Err(InvalidSetting {
                    variable: SAMPLER,
                    value: sampler,
                    expected: "always_on, always_off and traceidratio are known, and the same after parentbased_",
                });
            }
        }
        let Some(argument) = variables.get(SAMPLER_ARGUMENT) else {
            return Ok(Some(Sampler::Always));
        };
        match argument.parse() {
            Ok(share) if (0.0..=1.0).contains(&share) => Ok(Some(Sampler::Share(share))),
            _ => Err(InvalidSetting {
                variable: SAMPLER_ARGUMENT,
                value: argument,
                expected: "a share is a number from 0 to 1",
            }),
        }
    }
}
