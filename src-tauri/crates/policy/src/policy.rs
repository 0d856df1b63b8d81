//! One workspace's policy set: compiled once, asked often.

use std::fmt;

use bodyguard_protocol::{Digest, escape_line};
use cedar_policy::ffi::DetailedError;
use cedar_policy::{
    Authorizer, Decision as CedarDecision, Effect, ParseErrors, Policy as CedarPolicy, PolicyId, PolicySet, Response,
    Schema, ValidationMode, Validator,
};

use crate::decision::DEFAULT_DENY;
use crate::source::{Source, Statement};
use crate::{Decision, PolicyError, Request, Verdict};

const SCHEMA: &str = include_str!("schema.cedarschema");

/// A workspace's compiled policies.
///
/// What no rule permits is denied; a forbid beats every permit; a satisfied permit without `@ask`
/// allows; with only permits that ask, the first in the text asks.
pub struct Policy {
    digest: Digest,
    schema: Schema,
    set: PolicySet,
    /// In the order of the text.
    rules: Vec<Rule>,
}

struct Rule {
    id: String,
    ask: Option<String>,
    effect: Effect,
    /// The rule without its annotations, letter for letter.
    body: String,
}

impl Policy {
    /// Compiles a policy text.
    ///
    /// # Errors
    /// [`PolicyError`] with the place, where the text isn't Cedar, doesn't fit the schema (unknown
    /// actions, types or attributes, rules that can never apply, letters that look like others), has
    /// placeholders, a rule without a unique `@id`, an annotation other than `@id` and `@ask`, an
    /// `@ask` on a forbid or without a sentence; and where it is longer than
    /// [`MAX_POLICY_BYTES`](crate::MAX_POLICY_BYTES), or a rule longer than 16 KiB or nested more than twelve deep.
    pub fn parse(file: &str, text: &str) -> Result<Self, PolicyError> {
        let source = Source::new(file, text);
        source.check_limits()?;
        let parsed: PolicySet =
            text.parse().map_err(|e: ParseErrors| source.diagnostic(&DetailedError::from(&e), text.len()))?;
        if let Some(placeholder) = parsed.templates().next() {
            let place = source.statement(number(placeholder.id())).start();
            return Err(source.error(place, "`?principal` and `?resource` have no meaning here"));
        }
        let mut policies: Vec<_> = parsed.policies().map(|policy| (number(policy.id()), policy)).collect();
        policies.sort_by_key(|(number, _)| *number);
        let mut set = PolicySet::new();
        let mut rules: Vec<Rule> = Vec::new();
        for (number, policy) in policies {
            let statement = source.statement(number);
            let rule = Rule::read(&source, &statement, policy)?;
            set.add(policy.new_id(PolicyId::new(&rule.id))).map_err(|_| {
                source.error(statement.annotation("id"), format!("`{}` is the @id of an earlier rule", rule.id))
            })?;
            rules.push(rule);
        }
        let schema = validate(&source, &set, &rules)?;
        Ok(Self { digest: Digest::of(text.as_bytes()), schema, set, rules })
    }

    /// The digest of the text.
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Whether this permits nothing that `old` didn't, and nothing without asking that `old` asked
    /// about: it has no permit that `old` hasn't, and every forbid of it. What this can't tell counts as
    /// wider.
    pub fn narrows(&self, old: &Self) -> bool {
        let new_permits = self.meanings(Effect::Permit);
        let old_permits = old.meanings(Effect::Permit);
        let new_forbids = self.meanings(Effect::Forbid);
        let old_forbids = old.meanings(Effect::Forbid);
        new_permits.iter().all(|rule| old_permits.contains(rule))
            && old_forbids.iter().all(|rule| new_forbids.contains(rule))
    }

    /// What the rules of one effect do, whatever they are called and however they say why they ask.
    fn meanings(&self, effect: Effect) -> Vec<(bool, &str)> {
        let rules = self.rules.iter().filter(|rule| rule.effect == effect);
        rules.map(|rule| (rule.ask.is_some(), rule.body.as_str())).collect()
    }

    /// Decides a request. A request that fits no action of the schema, and a rule that can't be
    /// evaluated, deny.
    pub fn decide(&self, request: &Request<'_>) -> Decision {
        let verdict = match request.to_cedar(&self.schema) {
            Ok((cedar, entities)) => {
                let response = Authorizer::new().is_authorized(&cedar, &self.set, &entities);
                self.verdict(request, &response)
            }
            Err(why) => Verdict::Deny {
                reason: format!("{} doesn't go with this target: {why}", request.operation.policy_action()),
                rule: None,
            },
        };
        Decision::new(request, self.digest.clone(), verdict)
    }

    fn verdict(&self, request: &Request<'_>, response: &Response) -> Verdict {
        let diagnostics = response.diagnostics();
        // Cedar passes over a rule that fails; were it a forbid, that would open what it closes.
        if let Some(error) = diagnostics.errors().next() {
            return Verdict::Deny { reason: format!("a rule can't be evaluated: {error}"), rule: None };
        }
        let satisfied: Vec<&Rule> = self
            .rules
            .iter()
            .filter(|rule| diagnostics.reason().any(|id| AsRef::<str>::as_ref(id) == rule.id))
            .collect();
        let action = request.operation.policy_action();
        match (response.decision(), satisfied.first()) {
            (CedarDecision::Allow, Some(first)) => match satisfied.iter().find(|rule| rule.ask.is_none()) {
                Some(rule) => Verdict::Allow { rule: rule.id.clone() },
                None => Verdict::Ask { why: first.ask.clone().unwrap_or_default(), rule: first.id.clone() },
            },
            (CedarDecision::Deny, Some(first)) => Verdict::Deny {
                reason: format!("the rule `{}` forbids {action} here", first.id),
                rule: Some(first.id.clone()),
            },
            (_, None) => Verdict::Deny { reason: format!("no rule permits {action} here"), rule: None },
        }
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.rules.iter().map(|rule| rule.id.as_str()).collect();
        f.debug_struct("Policy").field("digest", &self.digest).field("rules", &ids).finish_non_exhaustive()
    }
}

impl Rule {
    fn read(source: &Source<'_>, statement: &Statement, policy: &CedarPolicy) -> Result<Self, PolicyError> {
        if let Some((name, _)) = policy.annotations().find(|(name, _)| !matches!(*name, "id" | "ask")) {
            let message = format!("`@{name}` isn't an annotation of this version; there are @id and @ask");
            return Err(source.error(statement.annotation(name), message));
        }
        let id = policy.annotation("id").unwrap_or("");
        if id.is_empty() {
            return Err(source.error(statement.start(), "a rule needs an @id(\"name\")"));
        }
        if !is_rule_name(id) {
            let message = format!(
                "`{}` can't be an @id: 1 to 64 of a-z, 0-9 and `-`, first a letter, and not `{DEFAULT_DENY}`",
                escape_line(id)
            );
            return Err(source.error(statement.annotation("id"), message));
        }
        let ask = policy.annotation("ask").map(str::trim);
        match (ask, policy.effect()) {
            (Some(""), _) => Err(source.error(statement.annotation("ask"), "@ask needs a sentence that says why")),
            (Some(_), Effect::Forbid) => {
                Err(source.error(statement.annotation("ask"), "@ask belongs on a permit; a forbid never asks"))
            }
            (ask, effect) => {
                let body = source.body(statement).to_owned();
                Ok(Self { id: id.to_owned(), ask: ask.map(str::to_owned), effect, body })
            }
        }
    }
}

fn is_rule_name(id: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    id.len() <= 64 && id.starts_with(|c: char| c.is_ascii_lowercase()) && id.chars().all(allowed) && id != DEFAULT_DENY
}

/// Cedar numbers rules in the order of the text: `policy0`, `policy1`, …
fn number(id: &PolicyId) -> usize {
    AsRef::<str>::as_ref(id).strip_prefix("policy").and_then(|digits| digits.parse().ok()).unwrap_or(usize::MAX)
}

/// Checks the rules against the schema and gives it back. Warnings count too: they are about rules
/// that can never apply and about letters that deceive a reader.
fn validate(source: &Source<'_>, set: &PolicySet, rules: &[Rule]) -> Result<Schema, PolicyError> {
    let (schema, _) = Schema::from_cedarschema_str(SCHEMA)
        .map_err(|e| source.error(0, format!("the schema of this version is broken: {e}")))?;
    let validator = Validator::new(schema);
    let result = validator.validate(set, ValidationMode::Strict);
    let number = |id: &PolicyId| rules.iter().position(|rule| rule.id == AsRef::<str>::as_ref(id));
    let located = |id: &PolicyId, error: DetailedError| {
        let number = number(id).unwrap_or(usize::MAX);
        let whole = source.statement(number).start();
        // What Cedar says about a whole rule often follows from something more exact.
        let exact = error.source_locations.iter().any(|label| label.loc.start != whole);
        ((number, !exact), source.diagnostic(&error, whole))
    };
    let errors = result.validation_errors().map(|e| located(e.policy_id(), DetailedError::from(e)));
    let warnings = result.validation_warnings().map(|w| located(w.policy_id(), DetailedError::from(w)));
    match errors.chain(warnings).min_by_key(|(order, error)| (*order, error.line, error.column)) {
        Some((_, error)) => Err(error),
        None => Ok(validator.schema().clone()),
    }
}
