/** The hexadecimal digits of `sha256:…`. */
export function digestHex(digest: string): string {
  return digest.slice(digest.indexOf(":") + 1);
}

/** The first eight digits, as the native bar shows them. */
export function digestShort(digest: string): string {
  return digestHex(digest).slice(0, 8);
}
