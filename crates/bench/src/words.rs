//! Enums whose variants are words of command lines and reports.

/// Defines such an enum, with a word for each of its variants.
macro_rules! words {
    ($(#[$about:meta])* pub enum $name:ident, $what:literal {
        $($(#[$doc:meta])* $variant:ident => $word:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            pub const ALL: [$name; [$($word),+].len()] = [$($name::$variant),+];

            /// The word on the command line and in reports.
            pub const fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<$name, String> {
                let found = $name::ALL.into_iter().find(|it| it.word() == text);
                found.ok_or_else(|| {
                    let words = $name::ALL.map($name::word).join(", ");
                    format!(concat!("'{}' is no ", $what, ": there are {}"), text, words)
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }
    };
}

pub(crate) use words;

#[cfg(test)]
mod tests {
    use crate::target::TargetName;

    #[test]
    fn words_are_read_as_they_are_shown() {
        for name in TargetName::ALL {
            assert_eq!(name.to_string().parse(), Ok(name));
            let shown = serde_json::to_value(name).unwrap();
            assert_eq!(shown, name.word());
        }
        assert_eq!(TargetName::RedisWait.word(), "redis-wait");
        let error = "mongo".parse::<TargetName>().unwrap_err();
        let known = "'mongo' is no store that is known here: there are areo, areo-keys,";
        assert!(error.starts_with(known), "{error}");
    }
}
