//! Reads a line of a script as a [`Command`]: a verb, its arguments, then
//! `name=value` options in any order.

use crate::command::{
    Action, Change, Command, DEFAULT_FAMILY, Form, Move, Operator, Read, Schema, Settings,
};
use crate::orders::Order;
use crate::text::Datum;

type Parsed<T> = Result<T, String>;

/// Reads one line; the error says what is wrong with it.
pub fn command(line: &str) -> Parsed<Command> {
    let mut words = Words::new(line);
    let verb = words.argument("verb")?;
    let command = match verb.as_str() {
        "open" => open(&mut words)?,
        "open-again" => Command::OpenAgain,
        "close" => Command::Close,
        "destroy" => Command::Destroy { name: words.argument("name")? },
        "list-families" => Command::ListFamilies { name: words.argument("name")? },
        "put" | "delete" | "merge" | "single-delete" | "delete-range" => {
            write(&verb, &mut words, Form::Single)?
        }
        "batch" => write("", &mut words, Form::Batch)?,
        "get" => Command::Get { key: words.datum()?, read: read(&mut words)? },
        "multi-get" => {
            let mut keys = Vec::new();
            while words.has_argument() {
                keys.push(words.datum()?);
            }
            Command::MultiGet { keys, read: read(&mut words)? }
        }
        "scan" => Command::Scan { read: read(&mut words)?, reverse: false },
        "scan-back" => Command::Scan { read: read(&mut words)?, reverse: true },
        "cursor" => Command::Cursor { read: read(&mut words)?, moves: moves(&mut words)? },
        "range" => range(&mut words)?,
        "snapshot" => Command::Snapshot { name: words.argument("name")? },
        "release" => Command::Release { name: words.argument("name")? },
        "hold" => Command::Hold { name: words.argument("name")?, family: words.family()? },
        "held" => Command::Held { name: words.argument("name")?, reverse: false },
        "held-back" => Command::Held { name: words.argument("name")?, reverse: true },
        "create-family" => {
            let name = words.argument("name")?;
            Command::CreateFamily { name, schema: schema(&mut words)? }
        }
        "drop-family" => Command::DropFamily { name: words.argument("name")? },
        "families" => Command::Families,
        "flush" => Command::Flush { family: Some(words.family()?) },
        "flush-all" => Command::Flush { family: None },
        "compact" | "rewrite" => {
            let (from, to) = (words.datum_option("from")?, words.datum_option("to")?);
            Command::Compact { family: words.family()?, from, to, rewrite: verb == "rewrite" }
        }
        "delete-files" => {
            let (from, until) = (words.datum_option("from")?, words.datum_option("until")?);
            Command::DeleteFiles { family: words.family()?, from, until }
        }
        "ingest" => ingest(&mut words)?,
        "set-options" => Command::SetOptions { family: None, changes: words.rest_of_options() },
        "set-family-options" => {
            let family = Some(words.family()?);
            Command::SetOptions { family, changes: words.rest_of_options() }
        }
        "wait" => Command::Wait,
        "checkpoint" => Command::Checkpoint { name: words.argument("name")? },
        "verify" => Command::Verify,
        "sync-log" => Command::SyncLog,
        "resume" => Command::Resume,
        "sequence" => Command::Sequence,
        "property" => Command::Property { name: words.argument("name")?, family: words.family()? },
        _ => return Err(format!("no command {verb}")),
    };
    words.finish()?;
    Ok(command)
}

fn open(words: &mut Words) -> Parsed<Command> {
    let name = words.argument("name")?;
    let mut settings = Settings {
        create: words.flag("create")?,
        exclusive: words.flag("exclusive")?,
        read_only: words.flag("read-only")?,
        ..Settings::default()
    };
    while let Some((name, value)) = words.next_option() {
        match name.split_once(':') {
            None => settings.knobs.push((name, value)),
            Some((family, what)) => {
                let at = settings.schemas.iter().position(|(known, _)| known == family);
                let at = at.unwrap_or_else(|| {
                    settings.schemas.push((family.to_string(), Schema::default()));
                    settings.schemas.len() - 1
                });
                set_schema(&mut settings.schemas[at].1, what, &value)?;
            }
        }
    }
    Ok(Command::Open { name, settings })
}

fn set_schema(schema: &mut Schema, what: &str, value: &str) -> Parsed<()> {
    match what {
        "order" => {
            let found = Order::ALL.into_iter().find(|order| order.word() == value);
            schema.order = found.ok_or_else(|| format!("no order {value}"))?;
        }
        "merge" => {
            let all = [Operator::None, Operator::Add, Operator::Append];
            let found = all.into_iter().find(|operator| operator.word() == value);
            schema.operator = found.ok_or_else(|| format!("no merge operator {value}"))?;
        }
        _ => return Err(format!("a family has no {what}")),
    }
    Ok(())
}

fn schema(words: &mut Words) -> Parsed<Schema> {
    let mut schema = Schema::default();
    for what in ["order", "merge"] {
        if let Some(value) = words.option(what) {
            set_schema(&mut schema, what, &value)?;
        }
    }
    Ok(schema)
}

/// Changes, separated by `;`. `sync=yes` may stand after the last.
fn write(first_verb: &str, words: &mut Words, form: Form) -> Parsed<Command> {
    let sync = words.flag("sync")?;
    let mut changes = Vec::new();
    for (i, mut part) in words.split(";").into_iter().enumerate() {
        if form == Form::Batch && part.rest.is_empty() {
            continue; // a batch without records
        }
        let single = form == Form::Single && i == 0;
        let verb = if single { first_verb.to_string() } else { part.argument("verb")? };
        changes.push(change(&verb, part)?);
    }
    if form == Form::Single && changes.len() != 1 {
        return Err("several changes need a batch".to_string());
    }
    Ok(Command::Write { changes, form, sync })
}

fn change(verb: &str, mut words: Words) -> Parsed<Change> {
    let key = words.datum()?;
    let action = match verb {
        "put" => Action::Put(words.datum()?),
        "delete" => Action::Delete,
        "single-delete" => Action::SingleDelete,
        "delete-range" => Action::DeleteRange(words.datum()?),
        "merge" => Action::Merge(words.datum()?),
        _ => return Err(format!("no change {verb}")),
    };
    let change = Change { family: words.family()?, key, action };
    words.finish()?;
    Ok(change)
}

/// Tables, separated by `|`, each of changes separated by `;`. `move=yes` may
/// stand after the last.
fn ingest(words: &mut Words) -> Parsed<Command> {
    let moved = words.flag("move")?;
    let mut tables = Vec::new();
    for mut table in words.split("|") {
        let mut changes = Vec::new();
        for mut part in table.split(";") {
            let verb = part.argument("verb")?;
            changes.push(change(&verb, part)?);
        }
        if changes.iter().any(|change: &Change| change.family != changes[0].family) {
            return Err("a table is of one family".to_string());
        }
        tables.push(changes);
    }
    Ok(Command::Ingest { tables, moved })
}

fn read(words: &mut Words) -> Parsed<Read> {
    Ok(Read {
        at: words.option("at"),
        lower: words.datum_option("lower")?,
        upper: words.datum_option("upper")?,
        prefix: words.datum_option("prefix")?,
        family: words.family()?,
    })
}

fn moves(words: &mut Words) -> Parsed<Vec<Move>> {
    if words.argument(":")? != ":" {
        return Err("expected : before the moves".to_string());
    }
    let mut moves = Vec::new();
    while words.has_argument() {
        moves.push(match words.argument("move")?.as_str() {
            "first" => Move::First,
            "last" => Move::Last,
            "next" => Move::Next,
            "prev" => Move::Prev,
            "seek" => Move::Seek(words.datum()?),
            "seek-for-prev" => Move::SeekForPrev(words.datum()?),
            other => return Err(format!("no move {other}")),
        });
    }
    Ok(moves)
}

fn range(words: &mut Words) -> Parsed<Command> {
    let ends = words.argument("ends")?;
    if !ends.bytes().all(|b| b == b'f' || b == b'b') {
        return Err("ends are f (front) and b (back)".to_string());
    }
    let from = words.datum_option("from")?;
    let (to, until) = (words.datum_option("to")?, words.datum_option("until")?);
    let inclusive = to.is_some();
    Ok(Command::Range { family: words.family()?, from, to: to.or(until), inclusive, ends })
}

/// The words of a line that were not used yet.
struct Words {
    rest: Vec<String>,
}

impl Words {
    fn new(line: &str) -> Words {
        Words { rest: line.split_whitespace().map(str::to_string).collect() }
    }

    /// The parts between separators; nothing is left here.
    fn split(&mut self, separator: &str) -> Vec<Words> {
        let rest = std::mem::take(&mut self.rest);
        rest.split(|word| word == separator).map(|part| Words { rest: part.to_vec() }).collect()
    }

    fn has_argument(&self) -> bool {
        self.rest.first().is_some_and(|word| !is_option(word))
    }

    fn argument(&mut self, what: &str) -> Parsed<String> {
        if self.rest.is_empty() {
            return Err(format!("expected {what}"));
        }
        Ok(self.rest.remove(0))
    }

    fn datum(&mut self) -> Parsed<Datum> {
        Datum::parse(&self.argument("bytes")?)
    }

    fn option(&mut self, name: &str) -> Option<String> {
        let at = self
            .rest
            .iter()
            .position(|word| word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))?;
        Some(self.rest.remove(at)[name.len() + 1..].to_string())
    }

    fn datum_option(&mut self, name: &str) -> Parsed<Option<Datum>> {
        self.option(name).map(|word| Datum::parse(&word)).transpose()
    }

    fn flag(&mut self, name: &str) -> Parsed<bool> {
        match self.option(name).as_deref() {
            None | Some("no") => Ok(false),
            Some("yes") => Ok(true),
            Some(other) => Err(format!("{name} is yes or no, not {other}")),
        }
    }

    fn family(&mut self) -> Parsed<String> {
        Ok(self.option("in").unwrap_or_else(|| DEFAULT_FAMILY.to_string()))
    }

    fn next_option(&mut self) -> Option<(String, String)> {
        let at = self.rest.iter().position(|word| is_option(word))?;
        let word = self.rest.remove(at);
        word.split_once('=').map(|(name, value)| (name.to_string(), value.to_string()))
    }

    fn rest_of_options(&mut self) -> Vec<(String, String)> {
        std::iter::from_fn(|| self.next_option()).collect()
    }

    fn finish(&self) -> Parsed<()> {
        match self.rest.first() {
            None => Ok(()),
            Some(word) => Err(format!("{word} means nothing here")),
        }
    }
}

/// `name=value`. Bytes never look like that: escaping writes `=` in hexadecimal.
fn is_option(word: &str) -> bool {
    word.contains('=')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Generator, Shape};

    /// A failure is printed as a script; the script must be the same history.
    #[test]
    fn every_generated_command_is_read_back_as_written() {
        for seed in 0..20 {
            for written in Generator::new(seed, Shape::default()).take(200) {
                let line = written.to_string();
                assert_eq!(command(&line).as_ref(), Ok(&written), "{line}");
            }
        }
    }

    /// A slip in a script is an error that names it, not another command.
    #[test]
    fn slips_are_reported() {
        for line in [
            "putt a 1",
            "put a",
            "put a 1 2",
            "get a of=x",
            "cursor first",
            "batch put a 1 ; b",
            "",
        ] {
            assert!(command(line).is_err(), "{line}");
        }
    }
}
