//! The policy of each workspace: a file in the data folder that the person edits.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bodyguard_policy::{Policy, template};
use bodyguard_protocol::ui::PolicyView;
use bodyguard_protocol::{ErrorCode, Fault, WorkspaceName};
use bodyguard_trace::{Log, PolicyLoaded, Record};

/// Compiled policies by workspace. A file is read again whenever a decision is due, so narrowing it
/// takes effect at once; a text with an error changes nothing, and the one before stays in force.
pub(crate) struct Policies {
    folder: PathBuf,
    loaded: Mutex<HashMap<WorkspaceName, Loaded>>,
}

#[derive(Clone)]
struct Loaded {
    text: String,
    policy: Arc<Policy>,
    error: Option<String>,
}

impl Policies {
    pub(crate) fn new(data_dir: &Path) -> Self {
        Self { folder: data_dir.join("policies"), loaded: Mutex::default() }
    }

    pub(crate) fn file(&self, workspace: &WorkspaceName) -> PathBuf {
        self.folder.join(format!("{workspace}.cedar"))
    }

    /// Writes the template for a new workspace, unless a file is there already.
    pub(crate) fn create(&self, workspace: &WorkspaceName) -> std::io::Result<()> {
        use std::io::Write as _;
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.file(workspace)) {
            Ok(mut file) => {
                file.write_all(template::CAREFUL.as_bytes())?;
                file.sync_all()
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The policy in force now.
    ///
    /// # Errors
    /// `denied_by_policy` where there never was a readable one: then nothing is permitted.
    pub(crate) async fn current(&self, log: &Log, workspace: &WorkspaceName) -> Result<Arc<Policy>, Fault> {
        let file = self.file(workspace);
        let text = std::fs::read_to_string(&file);
        let known = self.loaded.lock().unwrap_or_else(PoisonError::into_inner).get(workspace).cloned();
        if let (Ok(text), Some(known)) = (&text, &known)
            && known.text == *text
        {
            return Ok(Arc::clone(&known.policy));
        }
        let name = file.display().to_string();
        let parsed = text.map_err(|error| format!("{name}: {error}")).and_then(|text| {
            let policy = Policy::parse(&name, &text).map_err(|error| error.to_string())?;
            Ok((text, Arc::new(policy)))
        });
        match parsed {
            Ok((text, policy)) => {
                if log.reader().last_policy(workspace).await?.as_ref() != Some(&text) {
                    let digest = policy.digest().clone();
                    let loaded = PolicyLoaded { workspace: workspace.clone(), digest, text: text.clone() };
                    log.append(Record::PolicyLoaded(loaded)).await?;
                }
                self.remember(workspace, Loaded { text, policy: Arc::clone(&policy), error: None });
                Ok(policy)
            }
            Err(error) => self.keep_old(log, workspace, known, error).await,
        }
    }

    /// The last good text: of this run, else of the log.
    async fn keep_old(
        &self,
        log: &Log,
        workspace: &WorkspaceName,
        known: Option<Loaded>,
        error: String,
    ) -> Result<Arc<Policy>, Fault> {
        let mut old = match known {
            Some(known) => known,
            None => {
                let recorded = log.reader().last_policy(workspace).await?;
                let policy =
                    recorded.and_then(|text| Policy::parse("the last good text", &text).ok().map(|p| (text, p)));
                let Some((text, policy)) = policy else {
                    tracing::error!(%workspace, error, "no policy can be read; everything is denied");
                    return Err(Fault::new(
                        ErrorCode::DeniedByPolicy,
                        "the workspace's policy can't be read, so nothing is permitted",
                    ));
                };
                Loaded { text, policy: Arc::new(policy), error: None }
            }
        };
        if old.error.as_ref() != Some(&error) {
            tracing::error!(%workspace, error, "the policy has an error; the one before stays in force");
        }
        old.error = Some(error);
        let policy = Arc::clone(&old.policy);
        self.remember(workspace, old);
        Ok(policy)
    }

    fn remember(&self, workspace: &WorkspaceName, loaded: Loaded) {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).insert(workspace.clone(), loaded);
    }

    /// The policy as the person sees it.
    pub(crate) async fn view(&self, log: &Log, workspace: &WorkspaceName) -> PolicyView {
        let file = self.file(workspace).display().to_string();
        match self.current(log, workspace).await {
            Ok(policy) => {
                let error = self
                    .loaded
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get(workspace)
                    .and_then(|loaded| loaded.error.clone());
                PolicyView { file, digest: policy.digest().clone(), error }
            }
            Err(fault) => PolicyView { file, digest: bodyguard_protocol::Digest::of(b""), error: Some(fault.message) },
        }
    }
}
