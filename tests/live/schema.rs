//! Validates JSON by a JSON Schema (draft 2020-12), with the keywords that `schema/rtrace-1.json` uses. An unknown
//! keyword is a failure.

use regex::Regex;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::HashMap;

/// A schema document.
pub struct Schema {
    document: Value,
    /// Regular expressions, compiled on first use.
    patterns: RefCell<HashMap<String, Regex>>,
}

impl Schema {
    pub fn new(text: &str) -> Schema {
        Schema { document: serde_json::from_str(text).expect("the schema is JSON"), patterns: RefCell::default() }
    }

    /// Reports where and why the value does not match the schema.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        self.holds(&self.document, value, "")
    }

    fn holds(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let Some(schema) = schema.as_object() else { panic!("{at}: {schema} is no schema") };
        for (keyword, wants) in schema {
            self.keyword(schema, keyword, wants, value, at)?;
        }
        Ok(())
    }

    fn keyword(&self, schema: &Map<String, Value>, keyword: &str, wants: &Value, value: &Value, at: &str) -> Result<(), String> {
        let unless = |holds: bool| if holds { Ok(()) } else { Err(format!("{at}: {value} against {keyword} {wants}")) };
        let number = || wants.as_i64().expect("a number");
        match keyword {
            "$schema" | "$defs" | "title" | "description" => Ok(()),
            "$ref" => {
                let name = wants.as_str().and_then(|path| path.strip_prefix("#/$defs/")).expect("a definition of this document");
                self.holds(&self.document["$defs"][name], value, at)
            }
            "oneOf" => {
                let results: Vec<_> = wants.as_array().expect("schemas").iter().map(|one| self.holds(one, value, at)).collect();
                match results.iter().filter(|result| result.is_ok()).count() {
                    1 => Ok(()),
                    0 => {
                        Err(format!("{at}: none of these: {}", results.into_iter().filter_map(Result::err).collect::<Vec<_>>().join("; ")))
                    }
                    many => Err(format!("{at}: {many} of the alternatives hold for {value}")),
                }
            }
            "type" => {
                let is = |name: &Value| is_of(value, name.as_str().expect("a type's name"));
                unless(wants.as_array().map_or_else(|| is(wants), |any| any.iter().any(is)))
            }
            "const" => unless(value == wants),
            "enum" => unless(wants.as_array().expect("values").contains(value)),
            "pattern" => unless(value.as_str().is_none_or(|text| self.matches(wants.as_str().expect("a pattern"), text))),
            "minimum" => unless(value.as_i64().is_none_or(|value| value >= number())),
            "maximum" => unless(value.as_i64().is_none_or(|value| value <= number())),
            "minItems" => unless(value.as_array().is_none_or(|items| items.len() as i64 >= number())),
            "maxItems" => unless(value.as_array().is_none_or(|items| items.len() as i64 <= number())),
            "items" => {
                value.as_array().into_iter().flatten().enumerate().try_for_each(|(i, item)| self.holds(wants, item, &format!("{at}[{i}]")))
            }
            "required" => unless(value.as_object().is_none_or(|object| {
                wants.as_array().expect("names").iter().all(|name| object.contains_key(name.as_str().expect("a name")))
            })),
            "properties" => {
                let members = value.as_object().into_iter().flatten().filter_map(|(name, value)| Some((name, value, wants.get(name)?)));
                members.into_iter().try_for_each(|(name, value, schema)| self.holds(schema, value, &format!("{at}.{name}")))
            }
            "additionalProperties" => {
                let named = |name: &String| schema.get("properties").is_some_and(|known| known.get(name).is_some());
                let mut others = value.as_object().into_iter().flatten().filter(|(name, _)| !named(name));
                match wants {
                    Value::Bool(false) => others.next().map_or(Ok(()), |(name, _)| Err(format!("{at}: there is no member {name}"))),
                    Value::Bool(true) => Ok(()),
                    schema => others.try_for_each(|(name, value)| self.holds(schema, value, &format!("{at}.{name}"))),
                }
            }
            other => panic!("{at}: this test does not know the keyword {other}"),
        }
    }
}

impl Schema {
    fn matches(&self, pattern: &str, text: &str) -> bool {
        let mut patterns = self.patterns.borrow_mut();
        patterns.entry(pattern.to_owned()).or_insert_with(|| Regex::new(pattern).expect("a pattern")).is_match(text)
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("there is no type {other}"),
    }
}
