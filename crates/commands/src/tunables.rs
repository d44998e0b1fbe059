//! `get` and `set`: the tunables of a pool.

use std::collections::BTreeMap;

use dashpot_api::{Client, SetTunables, TunableValue};
use dashpot_cli::{GetArgs, SetArgs};
use dashpot_output::screen::room;
use dashpot_output::{print, print_json, usage};
use dashpot_rules::{ParseError, format_tunable, parse_tunable_name};
use dashpot_text::table::{Column, Field, prose_within, table_of};

const FIELDS: [Field<TunableValue>; 6] = [
    Field::new(Column::Text("tunable"), |one| one.name.clone()),
    Field::new(Column::Figure("value"), |one| one.words.clone()),
    Field::new(Column::Figure("default"), |one| one.default_words.clone()),
    Field::new(Column::Figure("from"), |one| bound(one, one.min)),
    Field::new(Column::Figure("to"), |one| bound(one, one.max)),
    Field::wide(Column::Text("what it does"), help),
];

/// Prints the tunables of a pool.
pub fn get(client: &Client, args: &GetArgs) -> anyhow::Result<()> {
    let mut tunables = client.tunables(&args.pool)?;
    let mut wanted = args.tunables.iter().map(|tunable| tunable.info().name);
    let are_named = !args.tunables.is_empty();
    tunables.retain(|one| !are_named || wanted.clone().any(|name| name == one.name));
    if let Some(missing) = wanted.find(|name| !tunables.iter().any(|one| one.name == *name)) {
        anyhow::bail!("the daemon has no tunable '{missing}': it is of another version");
    }
    if args.json {
        return print_json(&tunables);
    }
    let mut text = table_of(room(args.wide), args.wide, &FIELDS, &tunables);
    if are_named && !args.wide {
        let help = tunables
            .iter()
            .map(|one| format!("{}: {}\n", one.name, help(one)));
        text += &prose_within(room(false), &help.collect::<String>());
    }
    print(&text)
}

/// Changes tunables of a pool, and prints the values before and after.
pub fn set(client: &Client, args: &SetArgs) -> anyhow::Result<()> {
    let wanted = wanted(args).unwrap_or_else(|error| usage(&error));
    let before = client.tunables(&args.pool)?;
    let mut after = client.set_tunables(&args.pool, &wanted)?;
    after.retain(|one| wanted.tunables.contains_key(&one.name));
    if args.json {
        return print_json(&after);
    }
    let line = |one: &TunableValue| {
        let (name, now) = (&one.name, &one.words);
        match before.iter().find(|before| before.name == one.name) {
            Some(before) if before.words != *now => {
                format!("{name}: {now} (was {})\n", before.words)
            }
            _ => format!("{name}: {now}, as before\n"),
        }
    };
    print(&after.iter().map(line).collect::<String>())
}

/// The request to set tunables. Refuses two values for the same tunable.
fn wanted(args: &SetArgs) -> Result<SetTunables, ParseError> {
    let mut tunables = BTreeMap::new();
    for setting in &args.settings {
        let name = setting.name.to_owned();
        if let Some(other) = tunables.insert(name, setting.words.clone()) {
            let (name, words) = (setting.name, &setting.words);
            let error = format!("{name} is given as {other} and as {words}: give one value");
            return Err(ParseError::new(error));
        }
    }
    Ok(SetTunables { tunables })
}

/// A bound, written as in a lab file. A choice has no bounds.
fn bound(tunable: &TunableValue, value: u64) -> String {
    let known = parse_tunable_name(&tunable.name);
    match known {
        _ if !tunable.choices.is_empty() => "-".to_owned(),
        Ok(known) => format_tunable(value, known.info().unit),
        Err(_) => value.to_string(),
    }
}

/// The effect of a tunable, and its possible values if they are words.
fn help(tunable: &TunableValue) -> String {
    let help = &tunable.help;
    match &tunable.choices[..] {
        [] => help.clone(),
        choices => format!("{help} One of: {}.", choices.join(", ")),
    }
}
