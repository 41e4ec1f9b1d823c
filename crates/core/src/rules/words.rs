//! Enums whose variants are words: on the wire, in the record, in files and for people.

/// Defines such an enum from one list, each variant with its word.
macro_rules! words {
    ($(#[$of:meta])* pub enum $name:ident { $($(#[$with:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name { $($(#[$with])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// All words.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// Its word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// All of them, in order.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];
        }
    };
}

pub(super) use words;
