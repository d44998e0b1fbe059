const KEY = "dashpot-theme";
const THEMES = ["light", "dark"] as const;

export function restoreTheme(): void {
  try {
    const theme = THEMES.find((one) => one === localStorage.getItem(KEY));
    if (theme) document.documentElement.dataset.theme = theme;
  } catch {
    // Without storage, the system's setting decides.
  }
}

export function turnTheme(dark: boolean): void {
  const theme = dark ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Without storage, the choice lasts until the page is closed.
  }
}
