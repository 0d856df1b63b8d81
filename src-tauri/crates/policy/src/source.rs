//! Places in a policy text. Cedar says where syntax and types are wrong; where a rule or one of its
//! annotations stands, it doesn't, so this finds them.

use cedar_policy::ffi::DetailedError;

use crate::PolicyError;

/// The longest policy text, in bytes.
pub const MAX_POLICY_BYTES: usize = 256 * 1024;

/// The longest rule, in bytes.
const MAX_RULE_BYTES: usize = 16 * 1024;

/// How deep brackets and `if` nest in one rule. Cedar's parser takes some 50 KiB of stack for each
/// level in a debug build, and a thread has as little as 2 MiB.
const MAX_DEPTH: usize = 12;

/// A policy text with its rules' places.
pub(crate) struct Source<'a> {
    file: &'a str,
    text: &'a str,
    statements: Vec<Statement>,
}

/// One rule, as byte offsets.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    start: usize,
    /// Where its semicolon stands; the text's end where it has none.
    end: usize,
    /// Where what comes after the annotations begins.
    body: Option<usize>,
    annotations: Vec<(String, usize)>,
    /// Brackets open, and `if`s so far, which nest without brackets.
    depth: usize,
    too_deep: Option<usize>,
}

impl Statement {
    fn nest(&mut self, at: usize) {
        self.depth = self.depth.saturating_add(1);
        if self.depth > MAX_DEPTH {
            self.too_deep.get_or_insert(at);
        }
    }

    /// Where an annotation stands; the rule's start where it has none of that name.
    pub(crate) fn annotation(&self, name: &str) -> usize {
        self.annotations.iter().find(|(found, _)| found == name).map_or(self.start, |(_, at)| *at)
    }

    /// Where the rule starts.
    pub(crate) const fn start(&self) -> usize {
        self.start
    }
}

impl<'a> Source<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text, statements: statements(text) }
    }

    /// Refuses what would exhaust the stack of Cedar's parser, which ends the process.
    ///
    /// # Errors
    /// Where the text as a whole is too long, or a rule is too long or nested too deeply.
    pub(crate) fn check_limits(&self) -> Result<(), PolicyError> {
        if self.text.len() > MAX_POLICY_BYTES {
            return Err(self.error(0, format!("longer than {MAX_POLICY_BYTES} bytes")));
        }
        for statement in &self.statements {
            if let Some(place) = statement.too_deep {
                return Err(self.error(place, format!("brackets and `if` are nested more than {MAX_DEPTH} deep")));
            }
            if statement.end.saturating_sub(statement.start) > MAX_RULE_BYTES {
                return Err(self.error(statement.start, format!("a rule is longer than {MAX_RULE_BYTES} bytes")));
            }
        }
        Ok(())
    }

    /// The rule of a number, from 0.
    pub(crate) fn statement(&self, number: usize) -> Statement {
        self.statements.get(number).cloned().unwrap_or_default()
    }

    /// A rule without its annotations, letter for letter.
    pub(crate) fn body(&self, statement: &Statement) -> &'a str {
        statement.body.and_then(|from| self.text.get(from..statement.end)).unwrap_or_default()
    }

    /// An error at a byte offset.
    pub(crate) fn error(&self, offset: usize, message: impl Into<String>) -> PolicyError {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count().saturating_add(1);
        let column = before.rsplit('\n').next().unwrap_or("").chars().count().saturating_add(1);
        PolicyError { file: self.file.to_owned(), line, column, message: message.into() }
    }

    /// One of Cedar's errors, at its own place or else at the given one.
    pub(crate) fn diagnostic(&self, error: &DetailedError, otherwise: usize) -> PolicyError {
        let place = error.source_locations.iter().map(|label| label.loc.start).min().unwrap_or(otherwise);
        let labels = error.source_locations.iter().filter_map(|label| label.label.as_deref());
        let mut message = error.message.clone();
        for more in labels.chain(error.help.as_deref()) {
            message.push_str("; ");
            message.push_str(more);
        }
        self.error(place, message)
    }
}

/// Splits at the semicolons that stand in neither a string nor a comment: in Cedar they end rules
/// and nothing else, and `@` begins annotations and nothing else.
fn statements(text: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    let mut current: Option<Statement> = None;
    let mut annotation = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c.is_whitespace() {
            continue;
        }
        if c == '/' && chars.peek().is_some_and(|(_, next)| *next == '/') {
            while chars.next_if(|(_, c)| !matches!(c, '\n' | '\r')).is_some() {}
            continue;
        }
        let statement = current.get_or_insert_with(|| Statement { start: at, ..Statement::default() });
        match c {
            ';' => found.extend(current.take().map(|rule| Statement { end: at, ..rule })),
            '@' => annotation = Some(at),
            '(' | '[' | '{' => statement.nest(at),
            ')' | ']' | '}' => statement.depth = statement.depth.saturating_sub(1),
            '"' => {
                while let Some((_, inner)) = chars.next_if(|(_, c)| *c != '"') {
                    if inner == '\\' {
                        chars.next();
                    }
                }
                chars.next();
            }
            c if is_word(c) => {
                let mut word = String::from(c);
                while let Some((_, c)) = chars.next_if(|(_, c)| is_word(*c)) {
                    word.push(c);
                }
                if word == "if" {
                    statement.nest(at);
                }
                match annotation.take() {
                    Some(at) => statement.annotations.push((word, at)),
                    None => {
                        statement.body.get_or_insert(at);
                    }
                }
            }
            _ => {}
        }
    }
    found.extend(current.map(|rule| Statement { end: text.len(), ..rule }));
    found
}

const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_annotations_are_found_past_strings_and_comments() {
        let text =
            "// a; @x\n@id(\"a;\\\"b // \")\npermit(principal,action,resource);\n  @ ask(\"@no\")@id(\"c\") forbid";
        let found = statements(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].start, 9);
        assert_eq!(found[0].annotations, [("id".to_owned(), 9)]);
        let names: Vec<_> = found[1].annotations.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["ask", "id"]);
        let place = Source::new("p.cedar", text).error(found[1].start, "here");
        assert_eq!((place.line, place.column), (4, 3));
    }

    #[test]
    fn columns_count_characters_and_no_offset_is_out_of_bounds() {
        let source = Source::new("p.cedar", "\u{e4}\u{f6}x");
        assert_eq!(source.error(4, "").column, 3);
        assert_eq!(source.error(999, "").column, 4);
        assert_eq!(source.error(1, "").line, 1, "not a boundary");
    }

    proptest::proptest! {
        #[test]
        fn finding_rules_never_fails(text in "[@\";/\\\\a-z \n\u{e4}]{0,60}") {
            for statement in statements(&text) {
                proptest::prop_assert!(text.is_char_boundary(statement.start));
            }
        }
    }
}
