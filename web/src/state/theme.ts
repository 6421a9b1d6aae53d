// Light, dark, or as the system has it. Kept in the browser.

import { effect, signal } from "@preact/signals";

const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

function kept(): Theme {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem("theme")) ?? "auto";
  } catch {
    return "auto";
  }
}

export const theme = signal<Theme>(kept());

export function startTheme(): void {
  effect(() => {
    document.documentElement.dataset["theme"] = theme.value;
    try {
      localStorage.setItem("theme", theme.value);
    } catch {
      // A browser that keeps nothing starts again as the system has it.
    }
  });
}

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "auto";
}
