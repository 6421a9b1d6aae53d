// Where the page is: the path names what is looked at, the query how. Five screens and two lists.

import { signal } from "@preact/signals";

export type Place =
  | { screen: "board" }
  | { screen: "task"; id: string; tab: string }
  | { screen: "sessions" }
  | { screen: "session"; id: string }
  | { screen: "traces" }
  | { screen: "trace"; id: string; event: string | undefined }
  | { screen: "health" }
  | { screen: "nowhere"; path: string };

/** The place that a path and a query name. */
export function placeOf(path: string, query: URLSearchParams): Place {
  const [first, second, ...more] = path.split("/").filter((part) => part !== "").map(decode);
  if (more.length > 0) return { screen: "nowhere", path };
  switch (first) {
    case undefined:
      return { screen: "board" };
    case "tasks":
      return second === undefined ? { screen: "board" } : { screen: "task", id: second, tab: query.get("tab") ?? "brief" };
    case "sessions":
      return second === undefined ? { screen: "sessions" } : { screen: "session", id: second };
    case "traces":
      return second === undefined ? { screen: "traces" } : { screen: "trace", id: second, event: query.get("event") ?? undefined };
    case "health":
      return second === undefined ? { screen: "health" } : { screen: "nowhere", path };
    default:
      return { screen: "nowhere", path };
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const taskPath = (id: string, tab?: string): string => `/tasks/${encodeURIComponent(id)}${tab ? `?tab=${tab}` : ""}`;
export const sessionPath = (id: string): string => `/sessions/${encodeURIComponent(id)}`;
export const tracePath = (id: string, event?: string): string =>
  `/traces/${encodeURIComponent(id)}${event ? `?event=${encodeURIComponent(event)}` : ""}`;

const here = (): { place: Place; query: URLSearchParams } => {
  const query = new URLSearchParams(location.search);
  return { place: placeOf(location.pathname, query), query };
};

const initial = typeof location === "undefined" ? { place: { screen: "board" } as Place, query: new URLSearchParams() } : here();
export const place = signal<Place>(initial.place);
export const query = signal<URLSearchParams>(initial.query);

function arrive(): void {
  const now = here();
  place.value = now.place;
  query.value = now.query;
}

/** How many steps of this page's own lie behind: kept with each, so that whatever way leads back to one it is known there. */
const depth = (): number => Number((history.state as { depth?: unknown } | null)?.depth) || 0;
/** Steps back that were asked for and have not come yet. */
let leaving = 0;

/** Goes to a path of this page. Whoever reads by keyboard or ear begins at its content. */
export function go(path: string): void {
  if (path === location.pathname + location.search) return;
  history.pushState({ depth: depth() + 1 }, "", path);
  leaving = 0;
  arrive();
  window.scrollTo(0, 0);
  document.getElementById("main")?.focus({ preventScroll: true });
}

/** Back to where it came from, within this page; else to the board. */
export function back(): void {
  if (depth() > leaving) {
    leaving += 1;
    history.back();
  } else {
    go("/");
  }
}

/** Changes what the query says; an empty value takes a name out. The way back is not made longer by it. */
export function ask(changes: { readonly [name: string]: string }): void {
  const next = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  history.replaceState(history.state, "", location.pathname + (text === "" ? "" : `?${text}`));
  arrive();
}

/** Follows the way back, and links of this page that are clicked in the plain way. */
export function startRouter(): void {
  addEventListener("popstate", () => {
    leaving = Math.max(0, leaving - 1);
    arrive();
  });
  addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || link.target !== "" || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (link.pathname.startsWith("/v1/")) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}
