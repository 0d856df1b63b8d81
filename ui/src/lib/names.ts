/** Names of agents and workspaces, as the supervisor takes them. It has the last word. */
export function isName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text);
}

/** Whether it looks like the full path of a folder, here or on Windows. */
export function isAbsolutePath(text: string): boolean {
  return /^(\/|[A-Za-z]:[\\/])/.test(text);
}
