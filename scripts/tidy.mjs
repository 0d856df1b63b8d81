// House rules that no compiler or linter holds: which way imports run, who may
// name tauri, and how long a file may get. Run by `./dev check`.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const SOFT_LINE_LIMIT = 500;

// protocol ← policy ← trace ← body ← supervisor ← mcp ← shell
const BELOW = {
  "bodyguard-protocol": [],
  "bodyguard-policy": ["protocol"],
  "bodyguard-trace": ["protocol", "policy"],
  "bodyguard-body": ["protocol", "policy", "trace"], // a Permit holds trace::IntentCommitted
  "bodyguard-supervisor": ["protocol", "policy", "trace", "body"],
  "bodyguard-mcp": ["protocol", "policy", "trace", "body", "supervisor"],
  bodyguard: ["protocol", "policy", "trace", "body", "supervisor", "mcp"],
};
const SHELL_ONLY = /^(tauri|wry|tao|gtk|webkit2gtk|tray-icon)(-|$)/;

const problems = [];

function run(program, ...args) {
  return execFileSync(program, args, { encoding: "utf8", maxBuffer: 1 << 28 });
}

function checkCrates() {
  const { packages } = JSON.parse(run("cargo", "metadata", "--no-deps", "--format-version", "1"));
  for (const { name, dependencies, manifest_path: path } of packages) {
    if (!path.includes("/src-tauri/")) continue; // tests may use what they like
    const allowed = BELOW[name];
    if (!allowed) {
      problems.push(`${name}: a new crate; say in scripts/tidy.mjs what it may import`);
      continue;
    }
    for (const dependency of dependencies) {
      if (dependency.kind === "dev") continue;
      const house = dependency.name.match(/^bodyguard-(.+)$/)?.[1];
      if (house && !allowed.includes(house)) {
        problems.push(`${name} must not import ${dependency.name}: imports run one way`);
      }
      if (name !== "bodyguard" && SHELL_ONLY.test(dependency.name)) {
        problems.push(`${name} names ${dependency.name}: only the shell may`);
      }
    }
  }
}

function trackedFiles() {
  return run("git", "ls-files", "--cached", "--others", "--exclude-standard").trim().split("\n");
}

function checkFile(path) {
  let text;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return; // deleted, not yet committed
  }
  if (/^ui\/src\//.test(path) && !path.startsWith("ui/src/rpc/") && text.includes("@tauri-apps")) {
    problems.push(`${path} imports @tauri-apps: only ui/src/rpc may`);
  }
  const lines = text.split("\n").length;
  if (/\.(rs|ts|svelte)$/.test(path) && !/generated\b/.test(path) && lines > SOFT_LINE_LIMIT) {
    console.warn(`note: ${path} has ${lines} lines (soft limit ${SOFT_LINE_LIMIT})`);
  }
}

checkCrates();
trackedFiles().forEach(checkFile);
for (const problem of problems) console.error(problem);
process.exit(problems.length > 0 ? 1 : 0);
