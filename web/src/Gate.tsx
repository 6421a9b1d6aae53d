// Where nobody gets on without a token: what is wrong, and where the way in is found.

import { useEffect } from "preact/hooks";

/** Asks for the same address with the token, which the server takes out of it again; nothing of it stays in the history. */
function enter(event: SubmitEvent): void {
  event.preventDefault();
  const token = new FormData(event.currentTarget as HTMLFormElement).get("token");
  const url = new URL(location.href);
  url.searchParams.set("token", String(token).trim());
  location.replace(url);
}

export function Gate({ reason }: { reason: string }) {
  useEffect(() => { document.title = "Baton"; }, []);
  return (
    <main class="gate" id="main">
      <h1>Baton</h1>
      <p class="gate-reason" role="alert">{`${reason[0]?.toUpperCase() ?? ""}${reason.slice(1)}.`}</p>
      <p>Open the link that <code>baton serve</code> printed when it began: it has the token in it. Or enter a token here.</p>
      <form onSubmit={enter}>
        <label>Token <input name="token" type="password" autocomplete="off" required autofocus /></label>
        <button type="submit">Enter</button>
      </form>
      <p class="dim">A new one: <code>baton token new me --scope operator</code></p>
    </main>
  );
}
