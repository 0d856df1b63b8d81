//! The signed report (OS-011 §9).

use bodyguard_policy::Signer;
use bodyguard_protocol::{BODY_SUBTYPE, Clock as _, Fault, OS011_VERSION, PROVIDER, Timestamp, canonical_bytes};
use bodyguard_supervisor::SystemClock;
use serde::{Deserialize, Serialize};

use super::house::Backend;
use super::runner::TestResult;

/// The format of the file.
const FORMAT: &str = "bodyguard.conformance.v1";

/// What was tested, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// `bodyguard.conformance.v1`.
    pub format: String,
    /// Always `bodyguard`.
    pub provider: String,
    /// The program's version.
    pub provider_version: String,
    /// Always `os` alone.
    pub body_subtypes: Vec<String>,
    /// The version of OS-011 that was tested against.
    pub os011_version: String,
    /// `simulator` or `host`.
    pub backend: String,
    /// `linux`, `macos` or `windows`.
    pub os_family: String,
    /// When the tests began.
    pub started_at: Timestamp,
    /// When they had ended.
    pub ended_at: Timestamp,
    /// How many hold.
    pub passed: usize,
    /// How many don't.
    pub failed: usize,
    /// Each test.
    pub results: Vec<TestResult>,
}

/// Who attests a report. The key is made for the report and on nobody's list: the signature shows that
/// the report is whole, not who ran it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attestation {
    /// Always `ed25519`.
    pub algorithm: String,
    /// The key's name.
    pub key_id: String,
    /// The public key in hexadecimal.
    pub verifying_key: String,
    /// Over the RFC 8785 bytes of the report without `attestation`, in hexadecimal.
    pub signature: String,
}

/// A report with its attestation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedReport {
    /// The report.
    #[serde(flatten)]
    pub report: Report,
    /// Its signature.
    pub attestation: Attestation,
}

impl Report {
    /// A report of tests that just ended.
    pub fn new(backend: Backend, started_at: Timestamp, results: Vec<TestResult>) -> Self {
        let passed = results.iter().filter(|result| result.passed).count();
        Self {
            format: FORMAT.to_owned(),
            provider: PROVIDER.to_owned(),
            provider_version: env!("CARGO_PKG_VERSION").to_owned(),
            body_subtypes: vec![BODY_SUBTYPE.to_owned()],
            os011_version: OS011_VERSION.to_owned(),
            backend: backend.name().to_owned(),
            os_family: std::env::consts::OS.to_owned(),
            started_at,
            ended_at: SystemClock.now().wall,
            passed,
            failed: results.len() - passed,
            results,
        }
    }

    /// Signs it with a new key, which is forgotten.
    ///
    /// # Errors
    /// `internal` without randomness.
    pub fn sign(self) -> Result<SignedReport, Fault> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| Fault::internal(error.to_string()))?;
        let signer = Signer::from_seed(seed);
        let attestation = Attestation {
            algorithm: "ed25519".to_owned(),
            key_id: signer.key_id(),
            verifying_key: signer.public_key_hex(),
            signature: signer.sign(&canonical_bytes(&self)?),
        };
        Ok(SignedReport { report: self, attestation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bodyguard_policy::KeyList;

    fn is_signed(signed: &SignedReport) -> bool {
        let mut keys = KeyList::new();
        keys.add(&signed.attestation.verifying_key).unwrap();
        let bytes = canonical_bytes(&signed.report).unwrap();
        keys.verify(&signed.attestation.key_id, &bytes, &signed.attestation.signature).is_ok()
    }

    #[test]
    fn r71_a_report_is_signed_whole_by_a_key_of_its_own() {
        let result = TestResult {
            number: 1,
            name: "perceive_returns_typed_observation".into(),
            body_subtype: "os".into(),
            passed: false,
            reason: Some("it has no `refs`".into()),
            duration_ms: 7,
        };
        let report = || Report::new(Backend::Simulator, Timestamp::from_millis(0), vec![result.clone()]);
        let signed = report().sign().unwrap();
        assert!(is_signed(&signed));
        assert_eq!((signed.report.passed, signed.report.failed), (0, 1));
        let text = serde_json::to_string(&signed).unwrap();
        assert_eq!(serde_json::from_str::<SignedReport>(&text).unwrap(), signed);
        let mut polished = signed.clone();
        polished.report.results[0].passed = true;
        assert!(!is_signed(&polished));
        assert_ne!(report().sign().unwrap().attestation.verifying_key, signed.attestation.verifying_key);
    }
}
