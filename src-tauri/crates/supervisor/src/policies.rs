//! The policy of each workspace: a file in the data folder that the person edits.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bodyguard_policy::{Policy, template};
use bodyguard_protocol::ui::PolicyView;
use bodyguard_protocol::{Digest, ErrorCode, Fault, WorkspaceName};
use bodyguard_trace::{Log, PolicyLoaded, Record};

/// Compiled policies by workspace. A file is read again whenever a decision is due. A text that only
/// narrows takes effect at once; one that could permit more waits for the person, and one with an error
/// changes nothing: the one before stays in force.
pub(crate) struct Policies {
    folder: PathBuf,
    loaded: Mutex<HashMap<WorkspaceName, Loaded>>,
}

#[derive(Clone)]
struct Loaded {
    text: String,
    policy: Arc<Policy>,
    problem: Option<Problem>,
}

/// Why the file's present text isn't in force.
#[derive(Clone, PartialEq)]
enum Problem {
    /// It isn't a policy; with the place.
    Error(String),
    /// It could permit more.
    Wider(Digest),
}

impl Policies {
    pub(crate) fn new(data_dir: &Path) -> Self {
        Self { folder: data_dir.join("policies"), loaded: Mutex::default() }
    }

    pub(crate) fn file(&self, workspace: &WorkspaceName) -> PathBuf {
        self.folder.join(format!("{workspace}.cedar"))
    }

    /// Writes the first text for a new workspace, by default the template, unless a file is there already.
    pub(crate) fn create(&self, workspace: &WorkspaceName, text: Option<&String>) -> std::io::Result<()> {
        use std::io::Write as _;
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.file(workspace)) {
            Ok(mut file) => {
                file.write_all(text.map_or(template::CAREFUL, String::as_str).as_bytes())?;
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
            && known.problem.is_none()
        {
            return Ok(Arc::clone(&known.policy));
        }
        let mut old = match known {
            Some(known) => known,
            None => self.recorded(log, workspace).await?,
        };
        let parsed = text.map_err(|error| format!("{}: {error}", file.display())).and_then(|text| {
            let policy = Policy::parse(&file.display().to_string(), &text).map_err(|error| error.to_string())?;
            Ok((text, policy))
        });
        let problem = match parsed {
            Ok((text, policy)) if policy.narrows(&old.policy) => {
                return self.put_in_force(log, workspace, text, policy).await;
            }
            Ok((_, policy)) => Problem::Wider(policy.digest().clone()),
            Err(error) => Problem::Error(error),
        };
        if old.problem.as_ref() != Some(&problem) {
            match &problem {
                Problem::Error(error) => tracing::error!(%workspace, error, "the policy before stays in force"),
                Problem::Wider(_) => tracing::warn!(%workspace, "a policy that permits more waits for the person"),
            }
        }
        old.problem = Some(problem);
        let policy = Arc::clone(&old.policy);
        self.remember(workspace, old);
        Ok(policy)
    }

    /// The text that the log says is in force; for a workspace that never had one, the template.
    async fn recorded(&self, log: &Log, workspace: &WorkspaceName) -> Result<Loaded, Fault> {
        let text = log.reader().last_policy(workspace).await?.unwrap_or_else(|| template::CAREFUL.to_owned());
        let policy = Policy::parse("the last good text", &text).map_err(|error| {
            tracing::error!(%workspace, %error, "no policy can be read; everything is denied");
            Fault::new(ErrorCode::DeniedByPolicy, "the workspace's policy can't be read, so nothing is permitted")
        })?;
        Ok(Loaded { text, policy: Arc::new(policy), problem: None })
    }

    async fn put_in_force(
        &self,
        log: &Log,
        workspace: &WorkspaceName,
        text: String,
        policy: Policy,
    ) -> Result<Arc<Policy>, Fault> {
        if log.reader().last_policy(workspace).await?.as_ref() != Some(&text) {
            let digest = policy.digest().clone();
            let loaded = PolicyLoaded { workspace: workspace.clone(), digest, text: text.clone() };
            log.append(Record::PolicyLoaded(loaded)).await?;
        }
        let policy = Arc::new(policy);
        self.remember(workspace, Loaded { text, policy: Arc::clone(&policy), problem: None });
        Ok(policy)
    }

    /// The file's text, if it is still the one that is meant, beside the text in force.
    ///
    /// # Errors
    /// `state_changed` where the file has another text by now; `invalid_argument` where it has an error.
    pub(crate) async fn waiting(
        &self,
        log: &Log,
        workspace: &WorkspaceName,
        digest: &Digest,
    ) -> Result<(String, String, Policy), Fault> {
        let file = self.file(workspace);
        let text = std::fs::read_to_string(&file).map_err(|error| Fault::invalid("workspace", error.to_string()))?;
        let policy = Policy::parse(&file.display().to_string(), &text)?;
        if policy.digest() != digest {
            return Err(Fault::new(ErrorCode::StateChanged, "the policy file was changed meanwhile"));
        }
        self.current(log, workspace).await?;
        let known = self.loaded.lock().unwrap_or_else(PoisonError::into_inner).get(workspace).cloned();
        let old = known.map(|known| known.text).unwrap_or_default();
        Ok((old, text, policy))
    }

    /// Puts the file's text in force, after a person said yes to exactly this text.
    ///
    /// # Errors
    /// As [`Self::waiting`]; storage errors.
    pub(crate) async fn accept(&self, log: &Log, workspace: &WorkspaceName, digest: &Digest) -> Result<(), Fault> {
        let (_, text, policy) = self.waiting(log, workspace, digest).await?;
        self.put_in_force(log, workspace, text, policy).await.map(drop)
    }

    fn remember(&self, workspace: &WorkspaceName, loaded: Loaded) {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).insert(workspace.clone(), loaded);
    }

    /// The policy as the person sees it.
    pub(crate) async fn view(&self, log: &Log, workspace: &WorkspaceName) -> PolicyView {
        let file = self.file(workspace).display().to_string();
        match self.current(log, workspace).await {
            Ok(policy) => {
                let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
                let (error, waiting) = match loaded.get(workspace).and_then(|loaded| loaded.problem.clone()) {
                    Some(Problem::Error(error)) => (Some(error), None),
                    Some(Problem::Wider(digest)) => (None, Some(digest)),
                    None => (None, None),
                };
                PolicyView { file, digest: policy.digest().clone(), error, waiting }
            }
            Err(fault) => PolicyView { file, digest: Digest::of(b""), error: Some(fault.message), waiting: None },
        }
    }
}
