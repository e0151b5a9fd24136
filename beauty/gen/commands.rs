//! Finds the ioctl commands among the constants of headers.

use super::expression::parameters_of;
use super::header::Body;
use super::int::Names;
use super::lex::{Token, tokens};
use super::library::Library;

/// The length of a chain of macros beyond which a constant is not taken for a command.
const DEPTH_MAX: u32 = 16;

/// Returns whether the definition of a constant in a header is a call of `_IO()` or of one of its variants, by itself,
/// through other macros, or as another name of such a constant.
pub fn is_command(library: &Library, header: &str, name: &str, others: &[String]) -> bool {
    let Some(read) = library.header(header) else { return false };
    let Some(Body::Expression(text)) = read.constant(name).map(|constant| &constant.body) else { return false };
    library.with_names(header, others, |names| makes_command(&tokens(text), names, 0))
}

/// Returns whether an expression calls a macro that makes a command, or is the name of a constant that is a command.
fn makes_command(text: &[Token], names: &dyn Names, depth: u32) -> bool {
    if depth > DEPTH_MAX {
        return false;
    }
    let calls = text.windows(2).any(|pair| match pair {
        [Token::Name(name), Token::Sign("(")] => {
            parameters_of(name).is_some() || names.function(name).is_some_and(|(_, body)| makes_command(&tokens(&body), names, depth + 1))
        }
        _ => false,
    });
    let mut words = text.iter().filter(|token| !matches!(token, Token::Sign("(" | ")")));
    let alias = match (words.next(), words.next()) {
        (Some(Token::Name(name)), None) => names.definition(name),
        _ => None,
    };
    calls || alias.is_some_and(|text| makes_command(&tokens(&text), names, depth + 1))
}
