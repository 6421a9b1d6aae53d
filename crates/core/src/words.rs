//! Closed sets of words as enums: one spelling each, for files, messages and people.

/// Why a text is none of a set of words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, got {got:?}")]
pub struct UnknownWord {
    pub expected: &'static str,
    pub got: String,
}

/// Declares an enum whose variants are written as fixed words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $expected:literal { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::words::UnknownWord;

            fn from_str(text: &str) -> Result<Self, crate::words::UnknownWord> {
                match text {
                    $($word => Ok($name::$variant),)+
                    _ => Err(crate::words::UnknownWord { expected: $expected, got: text.chars().take(80).collect() }),
                }
            }
        }

        crate::as_text!($name);
    };
}
pub(crate) use words;
