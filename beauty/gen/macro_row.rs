//! The words of a table's row that name macros with parameters (`EVIOCGNAME(size)`).

use super::fault::is_name;

/// A word of a table's row: a macro with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MacroRow {
    pub name: String,
    pub parameters: Vec<Parameter>,
}

/// What the parameter of a macro does to the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// `size`: it is the size of the memory, which the command contains, in a unit that the header determines.
    Size,
    /// `[N]` or `table[N]`: it is added to the number of the command, and is less than N. The table names its values.
    Added { table: Option<String>, count: u32 },
}

/// Parses a word like `EVIOCGBIT(input_event_type[32],size)`. Returns `None` if it has no parentheses.
pub fn parse(word: &str) -> Option<Result<MacroRow, String>> {
    let (name, rest) = word.split_once('(')?;
    let parameter = |text: &str| match text.split_once('[') {
        None if text == "size" => Ok(Parameter::Size),
        Some((table, count)) if table.is_empty() || is_name(table) => {
            let count = count.strip_suffix(']').and_then(|count| count.parse().ok()).filter(|count| (1..=256).contains(count));
            let count = count.ok_or_else(|| format!("`{word}`: the number of values in `{text}` is not between 1 and 256"))?;
            Ok(Parameter::Added { table: Some(table.to_string()).filter(|table| !table.is_empty()), count })
        }
        _ => Err(format!("`{word}`: a parameter is `size`, `[N]` or `table[N]`")),
    };
    let parameters = rest.strip_suffix(')').ok_or_else(|| format!("`{word}` has no closing parenthesis"));
    let parameters = parameters.and_then(|list| list.split(',').map(parameter).collect::<Result<Vec<_>, _>>());
    Some(match is_name(name) {
        true => parameters.map(|parameters| MacroRow { name: name.to_string(), parameters }),
        false => Err(format!("`{word}` is not a macro with parameters")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_macro_has_parameters() {
        let parsed = |word: &str| parse(word).expect("it has parentheses");
        let both = vec![Parameter::Added { table: Some("events".into()), count: 32 }, Parameter::Size];
        assert_eq!(parsed("GBIT(events[32],size)"), Ok(MacroRow { name: "GBIT".into(), parameters: both }));
        let channel = vec![Parameter::Added { table: None, count: 256 }];
        assert_eq!(parsed("READ([256])"), Ok(MacroRow { name: "READ".into(), parameters: channel }));
        assert!(parse("GBIT").is_none());
        for (word, expected) in [
            ("GBIT(size", "`GBIT(size` has no closing parenthesis"),
            ("GBIT(len)", "`GBIT(len)`: a parameter is `size`, `[N]` or `table[N]`"),
            ("GBIT([0])", "`GBIT([0])`: the number of values in `[0]` is not between 1 and 256"),
            ("G-T(size)", "`G-T(size)` is not a macro with parameters"),
        ] {
            assert_eq!(parsed(word), Err(expected.to_string()));
        }
    }
}
