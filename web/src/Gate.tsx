// Where nobody gets on without a token.

export function Gate({ reason }: { reason: string }) {
  return (
    <main class="gate" id="main">
      <h1>Baton</h1>
      <p>This page needs a token. Open the link that <code>baton serve</code> printed, or enter a token here.</p>
      <p class="dim">{reason}</p>
      <form method="get" action="/">
        <label>Token <input name="token" type="password" autocomplete="off" required autofocus /></label>
        <button type="submit">Enter</button>
      </form>
      <p class="dim">A new one: <code>baton token new me --scope operator</code></p>
    </main>
  );
}
