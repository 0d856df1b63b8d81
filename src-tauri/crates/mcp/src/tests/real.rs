//! The doors in front of the real supervisor, with a simulated body: what it answers fits the
//! schemas, and its asks can be waited for, taken back and polled.

use std::path::PathBuf;
use std::sync::Arc;

use bodyguard_policy::EnrolledDevices;
use bodyguard_supervisor::{
    Config, InitOptions, Supervisor, Surroundings, SystemClock, agent_socket, init, token_file,
};
use bodyguard_trace::WorkspaceBody;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::schemas::complaints;
use super::wire::{Wire, call, initialize};
use crate::serve::{Doors, ServeConfig};

struct Real {
    doors: Doors,
    supervisor: Supervisor,
    token: String,
    _dir: TempDir,
}

impl Real {
    async fn start() -> Self {
        let dir = TempDir::new().unwrap();
        let data_dir = dir.path().join("data");
        let agent = "alice".parse().unwrap();
        let workspaces = vec![("w".parse().unwrap(), PathBuf::from("/ws"), Some(WorkspaceBody::Simulator))];
        let agents = vec![("alice".parse().unwrap(), Vec::new())];
        init(InitOptions { data_dir: data_dir.clone(), workspaces, agents, ..InitOptions::default() }).await.unwrap();
        let token = std::fs::read_to_string(token_file(&data_dir, &agent)).unwrap();
        let config = Config {
            data_dir: data_dir.clone(),
            body_program: PathBuf::from("/nonexistent/bodyguard-body"),
            presence: Arc::new(|names| Arc::new(EnrolledDevices::new(names))),
            clock: Arc::new(SystemClock),
            health: Arc::new(Vec::new),
            surroundings: Surroundings::Apart,
        };
        let supervisor = Supervisor::start(config).await.unwrap();
        let socket = agent_socket(&data_dir);
        let doors =
            crate::serve(supervisor.clone(), ServeConfig { data_dir, socket, http_port: Some(0) }).await.unwrap();
        Self { doors, supervisor, token, _dir: dir }
    }

    async fn wire(&self) -> Wire {
        let mut wire = Wire::to(&self.doors.socket_path).await;
        wire.send(&json!({"bodyguard": 1, "agent": "alice", "token": self.token.trim()})).await;
        assert_eq!(wire.next().await, json!({"ok": true}));
        assert!(wire.ask(&initialize(1)).await["result"].is_object());
        wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        wire
    }
}

/// Calls a tool and gives the structured answer, which has to fit the tool's schema.
async fn answer(wire: &mut Wire, tool: &str, arguments: Value) -> Value {
    let answer = wire.ask(&call(9, tool, arguments)).await;
    let object = answer["result"]["structuredContent"].clone();
    assert_eq!(complaints(tool, &object), Vec::<String>::new(), "{object}");
    assert_eq!(answer["result"]["isError"], !object["error"].is_null());
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_supervisors_answers_fit_and_an_ask_is_waited_for() {
    let real = Real::start().await;
    let mut wire = real.wire().await;
    let session = answer(&mut wire, "body_os_ensure_session", json!({"goal": "see"})).await["session_id"].clone();
    let with = |fields: Value| {
        let mut arguments = json!({"session_id": session});
        arguments.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        arguments
    };
    let seen = answer(&mut wire, "body_os_perceive", with(json!({}))).await;
    assert_eq!(seen["generation"], 1, "{seen}");
    let set = answer(&mut wire, "body_os_affordances", with(json!({}))).await;
    assert!(set["affordances"].as_array().is_some_and(|list| !list.is_empty()), "{set}");
    let state = answer(&mut wire, "body_os_encode_state", with(json!({}))).await;
    assert_eq!(state["state_hash"], seen["state_hash"]);
    let missing =
        answer(&mut wire, "body_os_act", with(json!({"action": {"type": "file_read", "target": "/ws/none"}}))).await;
    assert!(missing["error"]["code"].is_string(), "{missing}");
    let shell = json!({"type": "shell_exec", "command": "echo hi"});
    let asked = answer(&mut wire, "body_os_act", with(json!({"action": shell, "wait_ms": 300}))).await;
    // Without a reachable keyring nothing can be signed, which is said at once and opens no ask.
    let code = asked["error"]["code"].as_str().unwrap().to_owned();
    assert!(["authorization_required", "signer_unavailable"].contains(&code.as_str()), "{asked}");
    if code == "authorization_required" {
        let ask = asked["error"]["escalation_id"].clone();
        let polled = answer(&mut wire, "body_os_act", with(json!({"escalation_id": ask, "wait_ms": 100}))).await;
        assert_eq!(polled["error"]["escalation_id"], ask);
    }
    let unknown = with(json!({"escalation_id": super::scripted::ASK, "wait_ms": 0}));
    assert_eq!(answer(&mut wire, "body_os_act", unknown).await["error"]["code"], "unknown_escalation");
    // Another connection of the same agent goes on with the session.
    let resumed = answer(&mut real.wire().await, "body_os_ensure_session", with(json!({}))).await;
    assert_eq!(resumed["resumed"], true);
    real.doors.shutdown().await;
    real.supervisor.shutdown().await;
}
