// How the window looks to this person. Nothing here matters to what is allowed.

export type Theme = "system" | "light" | "dark";

const THEME = "bodyguard.theme";
const SINGLE_KEYS = "bodyguard.single-keys";

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // storage may be switched off; then it holds until the window closes
  }
}

function write(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // as above
  }
}

const isTheme = (value: string | null): value is Theme =>
  value === "system" || value === "light" || value === "dark";

class Prefs {
  theme = $state<Theme>("system");
  /** Whether single keys such as `?` are shortcuts (WCAG 2.1.4: they can be switched off). */
  singleKeys = $state(true);

  constructor() {
    const theme = read(THEME);
    if (isTheme(theme)) this.theme = theme;
    this.singleKeys = read(SINGLE_KEYS) !== "off";
    this.#apply();
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    write(THEME, theme);
    this.#apply();
  }

  setSingleKeys(on: boolean): void {
    this.singleKeys = on;
    write(SINGLE_KEYS, on ? "on" : "off");
  }

  #apply(): void {
    const root = document.documentElement;
    if (this.theme === "system") delete root.dataset.theme;
    else root.dataset.theme = this.theme;
  }
}

export const prefs = new Prefs();
