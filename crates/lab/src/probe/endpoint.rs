//! Addresses of S3 endpoints.

use std::fmt;

/// The address of a gateway: `http://HOST[:PORT]` or `https://HOST[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// True if connections are encrypted.
    pub is_https: bool,
    /// A name or an address, without brackets.
    pub host: String,
    /// The port: 80 or 443 if the address has none.
    pub port: u16,
    /// The host and the port as the header `Host` has them.
    pub authority: String,
}

impl Endpoint {
    /// Reads an address.
    ///
    /// # Errors
    /// A sentence that says what an endpoint looks like.
    pub fn parse(text: &str) -> Result<Endpoint, String> {
        let form = "write http://HOST:PORT or https://HOST:PORT";
        let uri: http::Uri = text
            .parse()
            .map_err(|_| format!("'{text}' is no address of an endpoint: {form}"))?;
        let is_https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(format!("'{text}' has neither http:// nor https://: {form}")),
        };
        let authority = uri.authority().expect("an address with a scheme has one");
        if authority.as_str().contains('@') {
            // The sentence does not repeat the address, which may hold a secret.
            return Err(format!(
                "an endpoint has no user and no password: {form}, and pass credentials by the environment"
            ));
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(format!("'{text}' has a path: {form}"));
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        // A port that is no number is part of the text alone.
        let has_bad_port = authority.port_u16().is_none() && authority.as_str() != authority.host();
        if host.is_empty() || has_bad_port {
            return Err(format!("'{text}' has no host or no port: {form}"));
        }
        let usual = if is_https { 443 } else { 80 };
        Ok(Endpoint {
            is_https,
            host,
            port: authority.port_u16().unwrap_or(usual),
            authority: authority.as_str().to_owned(),
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::Endpoint;

    #[test]
    fn addresses_are_read() {
        let read = |text: &str| Endpoint::parse(text).unwrap();
        let plain = read("http://127.0.0.1:7480");
        assert_eq!((plain.host.as_str(), plain.port), ("127.0.0.1", 7480));
        assert_eq!(plain.to_string(), "http://127.0.0.1:7480");
        let secure = read("https://s3.example.com/");
        assert_eq!((secure.port, secure.is_https), (443, true));
        assert_eq!(read("http://[::1]:9000").host, "::1");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "localhost:9000",
            "ftp://a",
            "http://",
            "http://a/bucket",
            "http://a?x=1",
            "http://a:99999",
        ] {
            assert!(Endpoint::parse(text).is_err(), "{text}");
        }
        let secret = Endpoint::parse("http://id:hidden@host").unwrap_err();
        assert!(!secret.contains("hidden"), "{secret}");
    }
}
