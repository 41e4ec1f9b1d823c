//! Words that the engine has too, told from the engine's by their type: what is renamed there
//! doesn't change the wire, and what is added there doesn't compile until it has a word here.

/// An enum of the wire with the variants of one of the engine, in snake case, and the ways between
/// them.
macro_rules! mirror {
    (
        $(#[$of_enum:meta])*
        pub enum $name:ident of $core:ty {
            $($(#[$of_variant:meta])* $variant:ident,)*
        }
    ) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        #[serde(rename_all = "snake_case")]
        $(#[$of_enum])*
        pub enum $name {
            $($(#[$of_variant])* $variant,)*
        }

        impl From<$core> for $name {
            fn from(core: $core) -> Self {
                match core {
                    $(<$core>::$variant => Self::$variant,)*
                }
            }
        }

        impl From<$name> for $core {
            fn from(wire: $name) -> Self {
                match wire {
                    $($name::$variant => Self::$variant,)*
                }
            }
        }
    };
}
