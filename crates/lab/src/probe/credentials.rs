//! Keys that sign requests, from the environment or from a file.

use areo_s3::auth::{SERVICE, SigningKey, derive_signing_key};
use std::path::Path;
use zeroize::Zeroizing;

/// An access key of the store.
pub struct Credentials {
    /// The access key id.
    pub key_id: String,
    secret: Zeroizing<String>,
    /// The token of a temporary key.
    pub session_token: Option<String>,
    /// The region in the scope of signatures.
    pub region: String,
}

impl Credentials {
    /// The key that signs requests of a day (`YYYYMMDD` as a number).
    pub(super) fn signing_key(&self, day: u32) -> SigningKey {
        derive_signing_key(&self.secret, day, &self.region, SERVICE)
    }

    /// Reads `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`, or a file in the format of the AWS CLI, which counts
    /// more. The region is that of `region`, of `AWS_REGION` or of `AWS_DEFAULT_REGION`, else `us-east-1`.
    ///
    /// # Errors
    /// A sentence: there is no key, or the file cannot be read.
    pub fn find(
        file: Option<&Path>,
        region: Option<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Credentials, String> {
        let found = Credentials::search(file, region, variable)?;
        // They are part of headers.
        let is_sound = |text: &str| {
            let is_allowed = |byte: u8| byte.is_ascii_graphic() && !b"/,".contains(&byte);
            !text.is_empty() && text.bytes().all(is_allowed)
        };
        if !is_sound(&found.key_id) {
            return Err(
                "the access key id is empty, or has a space, a comma or a slash".to_owned(),
            );
        }
        if !is_sound(&found.region) {
            let region = &found.region;
            return Err(format!("'{region}' is no region: write such as us-east-1"));
        }
        let token = found.session_token.as_deref().unwrap_or_default();
        match token.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(found),
            false => Err("AWS_SESSION_TOKEN is no token: it has a space".to_owned()),
        }
    }

    fn search(
        file: Option<&Path>,
        region: Option<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Credentials, String> {
        let named = region.or_else(|| variable("AWS_REGION"));
        let region = named.or_else(|| variable("AWS_DEFAULT_REGION"));
        let region = region.unwrap_or_else(|| "us-east-1".to_owned());
        if let Some(path) = file {
            let text = std::fs::read_to_string(path).map_err(|error| {
                let path = path.display();
                format!("cannot read the credentials in {path}: {error}")
            })?;
            let text = Zeroizing::new(text);
            let profile = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
            let found = in_profile(&text, &profile);
            let missing = || {
                let path = path.display();
                format!("{path} has no aws_access_key_id and aws_secret_access_key in [{profile}]")
            };
            return found(region).ok_or_else(missing);
        }
        let key_id = variable("AWS_ACCESS_KEY_ID");
        let secret = variable("AWS_SECRET_ACCESS_KEY");
        let (Some(key_id), Some(secret)) = (key_id, secret) else {
            return Err(
                "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or pass --credentials FILE"
                    .to_owned(),
            );
        };
        Ok(Credentials {
            key_id,
            secret: Zeroizing::new(secret),
            session_token: variable("AWS_SESSION_TOKEN"),
            region,
        })
    }
}

/// Reads the section of a profile; the result makes credentials for a region.
fn in_profile<'a>(
    text: &'a str,
    profile: &'a str,
) -> impl FnOnce(String) -> Option<Credentials> + 'a {
    move |region| {
        let mut is_wanted = false;
        let (mut key_id, mut secret, mut session_token) = (None, None, None);
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
                is_wanted = name.trim() == profile;
            } else if let Some((name, value)) = line.split_once('=').filter(|_| is_wanted) {
                let value = Some(value.trim().to_owned());
                match name.trim() {
                    "aws_access_key_id" => key_id = value,
                    "aws_secret_access_key" => secret = value,
                    "aws_session_token" => session_token = value,
                    _ => {}
                }
            }
        }
        Some(Credentials {
            key_id: key_id?,
            secret: Zeroizing::new(secret?),
            session_token,
            region,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Credentials;

    #[test]
    fn the_environment_has_a_key_or_a_sentence_says_so() {
        let of = |name: &str| match name {
            "AWS_ACCESS_KEY_ID" => Some("id".to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some("secret".to_owned()),
            _ => None,
        };
        let found = Credentials::find(None, None, of).ok().unwrap();
        assert_eq!(
            (found.key_id.as_str(), found.region.as_str()),
            ("id", "us-east-1")
        );
        let refused = Credentials::find(None, None, |_| None).err().unwrap();
        assert!(refused.contains("AWS_ACCESS_KEY_ID"), "{refused}");
    }

    #[test]
    fn a_file_has_profiles() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("credentials");
        let text = "[default]\naws_access_key_id = a\naws_secret_access_key = b\n[other]\naws_access_key_id=c\n";
        std::fs::write(&path, text).unwrap();
        let found = Credentials::find(Some(&path), Some("here".into()), |_| None);
        let found = found.ok().unwrap();
        assert_eq!(
            (found.key_id.as_str(), found.region.as_str()),
            ("a", "here")
        );
        let other = |name: &str| (name == "AWS_PROFILE").then(|| "other".to_owned());
        let refused = Credentials::find(Some(&path), None, other).err().unwrap();
        assert!(refused.contains("[other]"), "{refused}");
    }
}
