// What stands where there is nothing to show: nothing there, not there yet, or why not.

import type { ComponentChildren } from "preact";
import type { Failure } from "../state/store.js";

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="empty"><p class="empty-title">{title}</p>{children}</div>;
}

export function Loading({ what }: { what: string }) {
  return <div class="empty" role="status"><p class="empty-title is-loading">Loading {what}…</p></div>;
}

export function Broken({ what, error, retry }: { what: string; error: Failure; retry?: () => void }) {
  return (
    <div class="empty is-broken" role="alert">
      <p class="empty-title">{what} cannot be shown</p>
      <p>{error.title}{error.code ? <span class="code"> {error.code}</span> : null}</p>
      {error.detail ? <p class="dim">{error.detail}</p> : null}
      {error.hint ? <p>Try: <code>{error.hint}</code></p> : null}
      {retry ? <button type="button" onClick={retry}>Try again</button> : null}
    </div>
  );
}
