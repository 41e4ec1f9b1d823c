//! Enums whose variants are words: on the wire, in the record, in files and for people.

/// Defines such an enum from one list, each variant with its word.
macro_rules! words {
    ($(#[$of:meta])* $vis:vis enum $name:ident { $($(#[$with:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        $vis enum $name { $($(#[$with])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// All words.
            $vis const WORDS: &'static [&'static str] = &[$($word),+];

            /// Its word.
            $vis fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// All of them, in order.
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];
        }
    };
}

pub(crate) use words;
