//! Enumerations with one name per variant, which is used on the command line, in files and in messages.

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$of_variant:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$of_variant])* #[serde(rename = $text)] $variant),* }
        impl $name {
            /// Every variant's name, in order.
            pub const NAMES: &[&str] = &[$($text),*];
            /// Every variant, in the order of the names.
            pub const ALL: &[$name] = &[$($name::$variant),*];
            /// The name on the command line and in files.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.pad(self.name()) }
        }
    };
}

pub(crate) use names;
