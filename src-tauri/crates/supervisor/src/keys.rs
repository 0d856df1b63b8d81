//! The everyday signing key, in the operating system's keyring.

use std::time::Duration;

use bodyguard_policy::{KeyList, Signer};
use bodyguard_protocol::ui::{CheckStatus, HealthCheck};
use bodyguard_protocol::{ErrorCode, Fault, Timestamp};
use bodyguard_trace::{ChangeNote, KeyRow, Log, Record, SettingChange};

use crate::Surroundings;

#[cfg(not(test))]
const SERVICE: &str = "org.bodyguard.signing-key";
/// A locked keyring may show a prompt of its own; nobody is waited for longer than this.
const PATIENCE: Duration = Duration::from_secs(30);
const KEPT_IN: &str = "the operating system's keyring";
const KEPT_APART: &str = "memory, as long as the process runs";

/// The signing key, if it can be reached, and the list of keys that are believed.
pub(crate) struct Keys {
    signer: Option<Signer>,
    list: KeyList,
    problem: Option<String>,
    person: String,
}

impl Keys {
    /// Fetches the key of this log, or makes one where the log never had any.
    pub(crate) async fn load(log: &Log, surroundings: Surroundings, now: Timestamp) -> Self {
        let person = whoami();
        let loaded = match surroundings {
            Surroundings::Person => load(log, now).await,
            Surroundings::Apart => make_apart(log, now).await,
        };
        let list = log.reader().key_list().await.unwrap_or_else(|error| {
            tracing::error!(%error, "the list of keys can't be read, so no block is believed");
            KeyList::default()
        });
        let (signer, problem) = match loaded {
            Ok(signer) => (Some(signer), None),
            Err(problem) => {
                tracing::warn!(problem, "no signing key; what needs a signature is refused");
                (None, Some(problem))
            }
        };
        Self { signer, list, problem, person }
    }

    pub(crate) fn signer(&self) -> Option<Signer> {
        self.signer.clone()
    }

    /// # Errors
    /// `signer_unavailable`, with what to do.
    pub(crate) fn require_signer(&self) -> Result<&Signer, Fault> {
        self.signer.as_ref().ok_or_else(|| {
            let why = self.problem.as_deref().unwrap_or("it was not loaded");
            Fault::new(ErrorCode::SignerUnavailable, format!("the signing key can't be reached: {why}")).hint(
                "the person must unlock or start the keyring and start Bodyguard again; until then only reads work",
            )
        })
    }

    pub(crate) const fn list(&self) -> &KeyList {
        &self.list
    }

    /// The person's name at this computer.
    pub(crate) fn person(&self) -> &str {
        &self.person
    }

    pub(crate) fn health(&self) -> Vec<HealthCheck> {
        let (status, detail, advice) = match (&self.signer, &self.problem) {
            (Some(signer), _) => (CheckStatus::Ok, format!("{} in {KEPT_IN}", signer.key_id()), None),
            (None, problem) => (
                CheckStatus::Failed,
                problem.clone().unwrap_or_default(),
                Some("Unlock or start the keyring (for example: apt install gnome-keyring), then start Bodyguard again. Until then nothing can be approved.".to_owned()),
            ),
        };
        vec![HealthCheck { name: "signing key".into(), status, detail, advice }]
    }
}

async fn load(log: &Log, now: Timestamp) -> Result<Signer, String> {
    let current = log.reader().keys().await.map_err(|e| e.to_string())?.into_iter().find(|key| key.current);
    let user = log_id(log).await?;
    let known = current.is_some();
    let worker = tokio::task::spawn_blocking(move || fetch_or_make(&user, known));
    let seed = tokio::time::timeout(PATIENCE, worker)
        .await
        .map_err(|_| "the keyring doesn't answer; it may be locked and waiting for its password".to_owned())?
        .map_err(|e| e.to_string())??;
    let signer = Signer::from_seed(seed);
    match current {
        Some(row) if row.key_id == signer.key_id() => Ok(signer),
        Some(row) => Err(format!("the keyring holds another key than {}, which this log was signed with", row.key_id)),
        None => {
            list(log, &signer, KEPT_IN, now).await?;
            Ok(signer)
        }
    }
}

/// A new key for a log that never had one; it is gone when the process is.
async fn make_apart(log: &Log, now: Timestamp) -> Result<Signer, String> {
    if !log.reader().keys().await.map_err(|e| e.to_string())?.is_empty() {
        return Err("this log has a key of its own, and none is made beside it".to_owned());
    }
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|e| e.to_string())?;
    let signer = Signer::from_seed(seed);
    list(log, &signer, KEPT_APART, now).await?;
    Ok(signer)
}

/// Puts a new key on the log's list.
async fn list(log: &Log, signer: &Signer, kept_in: &str, now: Timestamp) -> Result<(), String> {
    let row = KeyRow {
        key_id: signer.key_id(),
        public_key: signer.public_key_hex(),
        kept_in: kept_in.to_owned(),
        created_at: now,
        current: true,
    };
    log.change(SettingChange::Key(row), ChangeNote::by("bodyguard")).await.map_err(|e| e.to_string())?;
    Ok(())
}

/// The log's own name, which its first leaf says.
async fn log_id(log: &Log) -> Result<String, String> {
    let first = log.reader().leaf(1).await.map_err(|e| e.to_string())?;
    match first.map(|stored| stored.leaf.record) {
        Some(Record::Created(created)) => Ok(created.log_id),
        Some(_) | None => Err("the log has no beginning".to_owned()),
    }
}

/// Unit tests have no keyring.
#[cfg(test)]
fn fetch_or_make(_user: &str, _known: bool) -> Result<[u8; 32], String> {
    Ok([7; 32])
}

/// The seed from the keyring; a new one only where this log never had a key, so that a deleted
/// keyring entry is noticed rather than silently replaced.
#[cfg(not(test))]
fn fetch_or_make(user: &str, known: bool) -> Result<[u8; 32], String> {
    let entry = keyring::Entry::new(SERVICE, user).map_err(describe)?;
    match entry.get_secret() {
        Ok(secret) => <[u8; 32]>::try_from(secret).map_err(|_| "the keyring's entry isn't a key".to_owned()),
        Err(keyring::Error::NoEntry) if known => Err("the keyring has lost this log's key".to_owned()),
        Err(keyring::Error::NoEntry) => {
            let mut seed = [0; 32];
            getrandom::fill(&mut seed).map_err(|e| e.to_string())?;
            entry.set_secret(&seed).map_err(describe)?;
            Ok(seed)
        }
        Err(error) => Err(describe(error)),
    }
}

#[cfg(not(test))]
/// A keyring's error without anything that could be the secret itself.
fn describe(error: keyring::Error) -> String {
    match error {
        keyring::Error::NoDefaultStore => "no keyring service runs on the session bus".to_owned(),
        keyring::Error::NoStorageAccess(_) => "the keyring is locked or refuses access".to_owned(),
        keyring::Error::BadEncoding(_) => "the keyring's entry isn't a key".to_owned(),
        other => format!("the keyring failed: {other}"),
    }
}

fn whoami() -> String {
    let uid = rustix::process::getuid().as_raw();
    let from_passwd = std::fs::read_to_string("/etc/passwd").ok().and_then(|text| {
        text.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
        })
    });
    from_passwd.unwrap_or_else(|| format!("uid {uid}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bodyguard_protocol::Clock as _;

    use super::*;
    use crate::SystemClock;

    #[tokio::test]
    async fn a_key_apart_is_new_and_never_signs_for_a_log_that_has_one() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path(), Arc::new(SystemClock)).unwrap();
        let now = SystemClock.now().wall;
        let keys = Keys::load(&log, Surroundings::Apart, now).await;
        let id = keys.signer().unwrap().key_id();
        assert!(keys.list().ids().eq([id.as_str()]));
        let again = Keys::load(&log, Surroundings::Apart, now).await;
        assert!(again.signer().is_none() && again.require_signer().is_err());
        assert!(again.list().ids().eq([id.as_str()]), "no key was added");
    }
}
