//! The page in a browser: how it is opened, and how it signs in.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::text::Text;

/// A page that can be opened.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Page {
    /// Where it is: an address on loopback, with its port.
    pub address: String,
    /// What signs it in, once. It belongs into the fragment of the link, which no server is sent.
    pub code: String,
    /// How many seconds the code is good for.
    pub seconds: u64,
}

/// How a page signs in.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// The code of the link.
    pub code: String,
}

/// That it is signed in.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SignedIn {
    /// The page's own token. It ends with the process.
    pub token: String,
}

/// Something that waits for a person, and that a page was told of which nobody looks at.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Unseen {
    /// What it is: its id, as `midturn ps --waiting --json` has it.
    pub need: Text,
}

/// What becomes of a session whose page leaves.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Left {
    /// After so many seconds all its agents are stopped, unless somebody follows it then who answers. Absent: they
    /// go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stops_in: Option<u64>,
}
