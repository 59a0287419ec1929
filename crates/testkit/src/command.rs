//! The language of tests: what can be asked of a database, and what it may
//! answer. `Display` writes a command as a line of a script, `parse` reads it.

use crate::orders::Order;
use crate::text::{Datum, show};
use std::fmt;

/// The name of the family that is always there.
pub const DEFAULT_FAMILY: &str = "default";

/// One line of a script. The words are listed in `testdata/README.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "testdata/README.md tells the words of a script")]
pub enum Command {
    Open { name: String, settings: Settings },
    OpenAgain,
    Close,
    Destroy { name: String },
    ListFamilies { name: String },
    Write { changes: Vec<Change>, form: Form, sync: bool },
    Get { key: Datum, read: Read },
    MultiGet { keys: Vec<Datum>, read: Read },
    Scan { read: Read, reverse: bool },
    Cursor { read: Read, moves: Vec<Move> },
    Range { family: String, from: Option<Datum>, to: Option<Datum>, inclusive: bool, ends: String },
    Snapshot { name: String },
    Release { name: String },
    Hold { name: String, family: String },
    Held { name: String, reverse: bool },
    CreateFamily { name: String, schema: Schema },
    DropFamily { name: String },
    Families,
    Flush { family: Option<String> },
    Compact { family: String, from: Option<Datum>, to: Option<Datum>, rewrite: bool },
    DeleteFiles { family: String, from: Option<Datum>, until: Option<Datum> },
    Ingest { tables: Vec<Vec<Change>>, moved: bool },
    SetOptions { family: Option<String>, changes: Vec<(String, String)> },
    Wait,
    Checkpoint { name: String },
    Verify,
    SyncLog,
    Resume,
    Sequence,
    Property { name: String, family: String },
}

/// Whether a write is one of the calls for a single record or a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `put`, `delete`, `merge`, ... on the family; one change.
    Single,
    /// A batch.
    Batch,
}

/// One record of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The family's name.
    pub family: String,
    /// The key.
    pub key: Datum,
    /// What happens to it.
    pub action: Action,
}

/// What a record does to its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Gives it this value.
    Put(Datum),
    /// Removes it.
    Delete,
    /// Removes it, where it was put at most once since it was last removed.
    SingleDelete,
    /// Removes every key from it up to this one, exclusive.
    DeleteRange(Datum),
    /// Merges this operand into it.
    Merge(Datum),
}

/// Where and how to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The family's name.
    pub family: String,
    /// The snapshot's name; now, if none.
    pub at: Option<String>,
    /// First key within bounds.
    pub lower: Option<Datum>,
    /// First key after the bounds.
    pub upper: Option<Datum>,
    /// Only keys that start with this.
    pub prefix: Option<Datum>,
}

impl Read {
    /// The newest state of a whole family.
    pub fn of(family: &str) -> Read {
        Read { family: family.to_string(), at: None, lower: None, upper: None, prefix: None }
    }
}

/// A move of a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "testdata/README.md tells the words of a script")]
pub enum Move {
    First,
    Last,
    Next,
    Prev,
    Seek(Datum),
    SeekForPrev(Datum),
}

/// A built-in merge operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operator {
    /// Merging is an error.
    #[default]
    None,
    /// Adds numbers of eight bytes.
    Add,
    /// Appends, with a comma between.
    Append,
}

/// What belongs to a family for life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// The order of its keys.
    pub order: Order,
    /// What merging does.
    pub operator: Operator,
}

/// How to open a database: by whom, and `NAME=VALUE` pairs for the knobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Create it if it is missing.
    pub create: bool,
    /// Fail if it is there.
    pub exclusive: bool,
    /// Open for reading only.
    pub read_only: bool,
    /// Knobs, see `config.rs`; not known to the oracle, as none changes a result.
    pub knobs: Vec<(String, String)>,
    /// Schemas stated for this opening, over those known from before.
    pub schemas: Vec<(String, Schema)>,
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// It worked and has nothing to say.
    Done,
    /// A line of text.
    Text(String),
    /// A value, or that there is none.
    Value(Option<Vec<u8>>),
    /// What was found for each key, in the order asked.
    Values(Vec<Output>),
    /// Entries in the order met; then an error, if one ended the walk.
    Entries(Vec<(Vec<u8>, Vec<u8>)>, Option<String>),
    /// Where each move of a cursor led.
    Positions(Vec<Option<(Vec<u8>, Vec<u8>)>>),
    /// It failed: the kind of the error, the same on every surface.
    Failed(String),
}

impl Output {
    /// A failure of this kind.
    pub fn failed(kind: &str) -> Output {
        Output::Failed(kind.to_string())
    }

    /// The lines that a script expects.
    pub fn lines(&self) -> Vec<String> {
        let entry = |(key, value): &(Vec<u8>, Vec<u8>)| format!("{} = {}", show(key), show(value));
        match self {
            Output::Done => Vec::new(),
            Output::Text(text) => text.lines().map(str::to_string).collect(),
            Output::Value(Some(value)) => vec![show(value)],
            Output::Value(None) => vec!["(absent)".to_string()],
            Output::Values(each) => each.iter().flat_map(Output::lines).collect(),
            Output::Entries(entries, error) if entries.is_empty() && error.is_none() => {
                vec!["(empty)".to_string()]
            }
            Output::Entries(entries, error) => {
                let ending = error.iter().map(|kind| format!("error {kind}"));
                entries.iter().map(entry).chain(ending).collect()
            }
            Output::Positions(positions) => {
                positions.iter().map(|p| p.as_ref().map_or("(end)".to_string(), entry)).collect()
            }
            Output::Failed(kind) => vec![format!("error {kind}")],
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Open { name, settings } => write!(f, "open {name}{settings}"),
            Command::OpenAgain => f.write_str("open-again"),
            Command::Close => f.write_str("close"),
            Command::Destroy { name } => write!(f, "destroy {name}"),
            Command::ListFamilies { name } => write!(f, "list-families {name}"),
            Command::Write { changes, form, sync } => write_write(f, changes, *form, *sync),
            Command::Get { key, read } => write!(f, "get {key}{read}"),
            Command::MultiGet { keys, read } => {
                f.write_str("multi-get")?;
                keys.iter().try_for_each(|key| write!(f, " {key}"))?;
                write!(f, "{read}")
            }
            Command::Scan { read, reverse: false } => write!(f, "scan{read}"),
            Command::Scan { read, reverse: true } => write!(f, "scan-back{read}"),
            Command::Cursor { read, moves } => {
                write!(f, "cursor{read} :")?;
                moves.iter().try_for_each(|m| write!(f, " {m}"))
            }
            Command::Range { family, from, to, inclusive, ends } => {
                write!(f, "range {ends}")?;
                option(f, "from", from.as_ref())?;
                option(f, if *inclusive { "to" } else { "until" }, to.as_ref())?;
                in_family(f, family)
            }
            Command::Snapshot { name } => write!(f, "snapshot {name}"),
            Command::Release { name } => write!(f, "release {name}"),
            Command::Hold { name, family } => {
                write!(f, "hold {name}")?;
                in_family(f, family)
            }
            Command::Held { name, reverse: false } => write!(f, "held {name}"),
            Command::Held { name, reverse: true } => write!(f, "held-back {name}"),
            Command::CreateFamily { name, schema } => write!(f, "create-family {name} {schema}"),
            Command::DropFamily { name } => write!(f, "drop-family {name}"),
            Command::Families => f.write_str("families"),
            Command::Flush { family: None } => f.write_str("flush-all"),
            Command::Flush { family: Some(family) } => {
                f.write_str("flush")?;
                in_family(f, family)
            }
            Command::Compact { family, from, to, rewrite } => {
                f.write_str(if *rewrite { "rewrite" } else { "compact" })?;
                option(f, "from", from.as_ref())?;
                option(f, "to", to.as_ref())?;
                in_family(f, family)
            }
            Command::DeleteFiles { family, from, until } => {
                f.write_str("delete-files")?;
                option(f, "from", from.as_ref())?;
                option(f, "until", until.as_ref())?;
                in_family(f, family)
            }
            Command::Ingest { tables, moved } => {
                f.write_str("ingest")?;
                for (i, changes) in tables.iter().enumerate() {
                    f.write_str(if i > 0 { " | " } else { " " })?;
                    write_changes(f, changes)?;
                }
                f.write_str(if *moved { " move=yes" } else { "" })
            }
            Command::SetOptions { family, changes } => {
                let verb = if family.is_some() { "set-family-options" } else { "set-options" };
                f.write_str(verb)?;
                changes.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))?;
                family.as_ref().map_or(Ok(()), |family| in_family(f, family))
            }
            Command::Wait => f.write_str("wait"),
            Command::Checkpoint { name } => write!(f, "checkpoint {name}"),
            Command::Verify => f.write_str("verify"),
            Command::SyncLog => f.write_str("sync-log"),
            Command::Resume => f.write_str("resume"),
            Command::Sequence => f.write_str("sequence"),
            Command::Property { name, family } => {
                write!(f, "property {name}")?;
                in_family(f, family)
            }
        }
    }
}

fn write_write(
    f: &mut fmt::Formatter<'_>,
    changes: &[Change],
    form: Form,
    sync: bool,
) -> fmt::Result {
    if form == Form::Batch {
        f.write_str("batch ")?;
    }
    write_changes(f, changes)?;
    f.write_str(if sync { " sync=yes" } else { "" })
}

fn write_changes(f: &mut fmt::Formatter<'_>, changes: &[Change]) -> fmt::Result {
    for (i, change) in changes.iter().enumerate() {
        if i > 0 {
            f.write_str(" ; ")?;
        }
        match &change.action {
            Action::Put(value) => write!(f, "put {} {value}", change.key)?,
            Action::Delete => write!(f, "delete {}", change.key)?,
            Action::SingleDelete => write!(f, "single-delete {}", change.key)?,
            Action::DeleteRange(end) => write!(f, "delete-range {} {end}", change.key)?,
            Action::Merge(operand) => write!(f, "merge {} {operand}", change.key)?,
        }
        in_family(f, &change.family)?;
    }
    Ok(())
}

fn in_family(f: &mut fmt::Formatter<'_>, family: &str) -> fmt::Result {
    if family == DEFAULT_FAMILY { Ok(()) } else { write!(f, " in={family}") }
}

fn option(f: &mut fmt::Formatter<'_>, name: &str, value: Option<&Datum>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {name}={value}"))
}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = &self.at {
            write!(f, " at={at}")?;
        }
        option(f, "lower", self.lower.as_ref())?;
        option(f, "upper", self.upper.as_ref())?;
        option(f, "prefix", self.prefix.as_ref())?;
        in_family(f, &self.family)
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Move::First => f.write_str("first"),
            Move::Last => f.write_str("last"),
            Move::Next => f.write_str("next"),
            Move::Prev => f.write_str("prev"),
            Move::Seek(key) => write!(f, "seek {key}"),
            Move::SeekForPrev(key) => write!(f, "seek-for-prev {key}"),
        }
    }
}

impl Operator {
    /// The word for it in scripts.
    pub fn word(self) -> &'static str {
        match self {
            Operator::None => "none",
            Operator::Add => "add",
            Operator::Append => "append",
        }
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "order={} merge={}", self.order.word(), self.operator.word())
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (set, word) in
            [(self.create, "create"), (self.exclusive, "exclusive"), (self.read_only, "read-only")]
        {
            if set {
                write!(f, " {word}=yes")?;
            }
        }
        for (name, value) in &self.knobs {
            write!(f, " {name}={value}")?;
        }
        for (family, Schema { order, operator }) in &self.schemas {
            write!(f, " {family}:order={} {family}:merge={}", order.word(), operator.word())?;
        }
        Ok(())
    }
}
