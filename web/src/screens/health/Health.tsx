// Whether one may walk away: agents, scheduler, store, ledger, refused messages, and doctor's checks. Whatever is red says what to do.

import type { ComponentChildren } from "preact";
import "./health.css";
import { looksOnly } from "../../state/role.js";
import { Mark } from "../../parts/Badge.js";
import { copy, Id } from "../../parts/Id.js";
import { Broken, Loading } from "../../parts/States.js";
import { Time } from "../../parts/Time.js";
import { taskPath } from "../../router.js";
import { damage } from "../../state/damage.js";
import { bytes, plural, shortHash, span } from "../../state/format.js";
import { useKeys } from "../../state/keys.js";
import { now } from "../../state/store.js";
import { oneLine } from "../../state/text.js";
import { Checks } from "../trace/Checks.js";
import { Banner } from "../trace/Verdict.js";
import { VERDICTS } from "../trace/words.js";
import { answeredAt, isVerifying, load, machines, report, status, useStatus, verify, type AgentStatus, type Status } from "./state.js";
import { commandOf, damagesOf, endOf, journalWords, kindOf, NEAR_MS, projectionWords, troublesOf, type Trouble } from "./trouble.js";

/** An answer that is older is said to be. */
const OLD_MS = 12_000;

export function HealthScreen() {
  useStatus();
  useKeys("Health", [{ keys: "v", does: "verify the whole ledger", run: () => void verify() }]);
  const state = status.value;
  if (state.kind === "loading") return <Loading what="how Baton is" />;
  const damages = damagesOf(damage.value);
  if (state.kind === "broken") {
    const why = <Broken what="How Baton is" error={state.error} retry={() => void load()} />;
    // What does not read keeps nobody from having it verified.
    return damages.length === 0 ? why : <div class="screen health"><Safe troubles={damages} /><Part name="Ledger"><Verification /></Part>{why}</div>;
  }
  const { value } = state;
  return (
    <div class="screen health">
      <header class="head">
        <h1>Health</h1>
        <span class="dim">Baton {oneLine(value.version, 40)}, up for {span(now.value - Date.parse(value.startedAt))}</span>
        {now.value - answeredAt.value > OLD_MS ? <Mark kind="warn">{`as of ${span(now.value - answeredAt.value)} ago`}</Mark> : null}
      </header>
      {looksOnly() === undefined ? null : <p class="dim">{looksOnly()}</p>}
      {/* A server that has just begun has not read all of a long ledger. */}
      {value.counted && value.counted.to < value.counted.of ? <Mark kind="warn">{`agents and refused messages: ${value.counted.to} of ${value.counted.of} events read`}</Mark> : null}
      <Safe troubles={[...damages, ...troublesOf(value)]} />
      <div class="health-parts">
        <Agents agents={value.agents} />
        <Ledger status={value} />
        <Scheduler scheduler={value.scheduler} />
        <Store status={value} />
        <Refused refused={value.refused} />
        <Doctor status={value} />
      </div>
    </div>
  );
}

/** A command that can be copied. */
function Command({ text }: { text: string }) {
  return <button type="button" class="health-command" title="Copy" aria-label={`Copy: ${text}`} onClick={() => void copy(text, text)}><code>{oneLine(text, 300)}</code></button>;
}

function Part({ name, class: more = "", children }: { name: string; class?: string; children: ComponentChildren }) {
  return <section class={`panel ${more}`} aria-label={name}><h2>{name}</h2>{children}</section>;
}

function Safe({ troubles }: { troubles: readonly Trouble[] }) {
  const bad = troubles.filter((trouble) => trouble.kind === "bad").length;
  const kind = bad > 0 ? "bad" : troubles.length > 0 ? "warn" : "good";
  const words = bad > 0 ? "Not safe to walk away" : troubles.length > 0 ? "Safe, with something to look at" : "Safe to walk away";
  return (
    <section class={`health-safe is-${kind}`} aria-label="In short" role="status">
      <p class="health-safe-line"><Mark kind={kind}>{words}</Mark></p>
      {troubles.length === 0 ? <p class="dim">Agents, scheduler, store and ledger are as they should be.</p> : (
        <ul>
          {troubles.map((trouble) => (
            <li key={trouble.key}>
              <Mark kind={trouble.kind}>{trouble.kind === "bad" ? "wrong" : "look"}</Mark> <bdi>{trouble.text}</bdi>{" "}
              {trouble.path === undefined ? null : <a href={trouble.path}>Look there</a>}
              {trouble.command === undefined ? null : <Command text={trouble.command} />}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Agents({ agents }: { agents: readonly AgentStatus[] }) {
  return (
    <Part name="Agents" class="is-wide">
      {agents.every((agent) => agent.name === "mock") ? <p class="dim">No agent is configured{agents.length > 0 ? ", but for the mock that is built in" : ""}. <Command text="baton agent add --help" /></p> : null}
      {agents.length === 0 ? null : (
        <div class="scrolls" tabIndex={0} role="region" aria-label="Agents">
          <table>
            <thead><tr><th>agent</th><th>state</th><th>version</th><th>speaks</th><th>command</th><th>sessions</th><th>last start</th><th>failures</th></tr></thead>
            <tbody>{agents.map((agent) => <Agent key={agent.name} agent={agent} />)}</tbody>
          </table>
        </div>
      )}
    </Part>
  );
}

function Agent({ agent }: { agent: AgentStatus }) {
  const failures = agent.failures ?? 0;
  return (
    <tr>
      <th scope="row"><bdi>{oneLine(agent.name, 64)}</bdi></th>
      <td>
        {agent.installed ? <Mark kind="good">installed</Mark> : <Mark kind="bad">not installed</Mark>}
        {agent.detail ? <div class={agent.installed ? "dim" : "text-bad"}><bdi>{oneLine(agent.detail)}</bdi></div> : null}
        {agent.installed ? null : <div>Install it, then: <Command text={`baton agent check ${agent.name}`} /></div>}
      </td>
      <td>{agent.program !== undefined ? <bdi>{oneLine(agent.program, 80)}</bdi> : <span class="dim">{agent.harness === "exec" ? "does not say" : "not known yet"}</span>}</td>
      <td>{oneLine(agent.harness, 20)}</td>
      <td>{agent.command === undefined ? <span class="dim">built in</span> : <code>{oneLine(agent.command, 120)}</code>}</td>
      <td>{agent.sessions}{agent.maxSessions === undefined ? "" : ` of ${agent.maxSessions}`}</td>
      <td><Time at={agent.lastStartAt} /></td>
      <td>{failures === 0 ? "0" : <><a href="/sessions"><Mark kind="warn">{String(failures)}</Mark></a>{agent.lastFailureAt === undefined ? null : <span class="dim">, the last <Time at={agent.lastFailureAt} /></span>}</>}</td>
    </tr>
  );
}

function Ledger({ status: { ledger, origin } }: { status: Status }) {
  const verified = ledger.lastVerified;
  const [kind, word] = verified === undefined ? (["off", "never since the start"] as const) : VERDICTS[verified.verdict] ?? VERDICTS.unknown;
  const since = verified === undefined ? 0 : ledger.size - verified.events;
  return (
    <Part name="Ledger">
      <dl class="facts">
        <dt>last verified</dt>
        <dd>
          <Mark kind={kind}>{word}</Mark>{" "}
          {verified === undefined ? null : <><Time at={verified.at} />, {plural(verified.events, "event")}{since > 0 ? `; ${since} came since` : ""}</>}
        </dd>
        <dt>events</dt><dd>{ledger.size}</dd>
        <dt>origin</dt><dd><code>{oneLine(origin, 128)}</code></dd>
        {ledger.head === undefined ? null : <><dt>head</dt><dd><Id id={ledger.head} text={shortHash(ledger.head)} /></dd></>}
        {ledger.root === undefined ? null : <><dt>root</dt><dd><Id id={ledger.root} text={shortHash(ledger.root)} /></dd></>}
        {ledger.key === undefined ? null : <><dt>key</dt><dd><Id id={ledger.key} text={oneLine(ledger.key, 80)} /></dd></>}
      </dl>
      <Verification />
    </Part>
  );
}

function Verification() {
  const isBusy = isVerifying.value;
  return (
    <>
      <div class="buttons">
        <button type="button" class="primary" disabled={isBusy} title="v" onClick={() => void verify()}>{isBusy ? "Verifying…" : "Verify now"}</button>
        <Command text="baton verify" />
      </div>
      {report.value === undefined ? null : (
        <div class="ledger-report">
          <Banner report={report.value.report}><p class="dim">Checked <Time at={report.value.at} />; integrity {report.value.report.integrity}, completeness {report.value.report.completeness}.</p></Banner>
          <details open={report.value.report.verdict === "fail"}><summary>Checks and findings</summary><Checks report={report.value.report} /></details>
        </div>
      )}
    </>
  );
}

function Scheduler({ scheduler }: { scheduler: Status["scheduler"] }) {
  const near = scheduler.leases.filter((lease) => Date.parse(endOf(lease)) - now.value < NEAR_MS);
  return (
    <Part name="Scheduler">
      <dl class="facts">
        <dt>state</dt><dd>{scheduler.isDispatching ? <Mark kind="good">hands out tasks</Mark> : <Mark kind="warn">hands out nothing</Mark>}</dd>
        <dt>last look</dt><dd><Time at={scheduler.lastAt} />, every {span(scheduler.pollMs)}</dd>
        <dt>at work</dt><dd>{scheduler.running} of {scheduler.maxConcurrent}</dd>
        <dt>ready</dt><dd><a href="/">{plural(scheduler.ready, "task")}</a>{scheduler.oldestReadyAt === undefined ? null : <>, the oldest since <Time at={scheduler.oldestReadyAt} /></>}</dd>
        <dt>leases</dt><dd>{scheduler.leases.length}{near.length > 0 ? <> <Mark kind="warn">{`${near.length} near ${near.length === 1 ? "its" : "their"} end`}</Mark></> : null}</dd>
      </dl>
      {scheduler.leases.length === 0 ? null : (
        <ul class="health-leases">
          {[...scheduler.leases].sort((a, b) => (endOf(a) < endOf(b) ? -1 : 1)).slice(0, 50).map((lease) => (
            <li key={lease.taskId}><a href={taskPath(lease.taskId)}>{oneLine(lease.taskId, 128)}</a> <span class="dim"><bdi>{oneLine(lease.agent, 64)}</bdi>, ends <Time at={endOf(lease)} />{endOf(lease) === lease.expiresAt ? null : " unless it beats"}</span></li>
          ))}
        </ul>
      )}
    </Part>
  );
}

function Store({ status: { store, version, startedAt } }: { status: Status }) {
  return (
    <Part name="Store and version">
      <dl class="facts">
        <dt>store</dt><dd>{oneLine(store.kind, 40)}</dd>
        {store.bytes === undefined ? null : <><dt>size</dt><dd>{bytes(store.bytes)}</dd></>}
        {store.freeBytes === undefined ? null : <><dt>free</dt><dd>{bytes(store.freeBytes)}</dd></>}
        {store.journal === undefined ? null : <><dt>journal</dt><dd>{journalWords(store.journal)}</dd></>}
        {store.projection === undefined ? null : <><dt>projection</dt><dd>{projectionWords(store.projection)}</dd></>}
        <dt>machines</dt><dd>{machines.value.map((machine) => <div key={machine.id}>process {machine.pid}, {plural(machine.sessions, "session")}</div>)}</dd>
        <dt>Baton</dt><dd>{oneLine(version, 40)}</dd>
        <dt>began</dt><dd><Time at={startedAt} /></dd>
      </dl>
    </Part>
  );
}

function Refused({ refused }: { refused: Status["refused"] }) {
  return (
    <Part name="Refused messages">
      {refused.length === 0 ? <p class="dim">None was refused.</p> : (
        <>
          <table><thead><tr><th>reason</th><th class="is-number">count</th></tr></thead>
            <tbody>{[...refused].sort((a, b) => b.count - a.count).map((item) => <tr key={item.reason}><td><code>{oneLine(item.reason, 80)}</code></td><td class="is-number">{item.count}</td></tr>)}</tbody></table>
          <p>Each is in the ledger: <Command text="baton events --type protocol.message.rejected" /></p>
        </>
      )}
    </Part>
  );
}

function Doctor({ status: { checks } }: { status: Status }) {
  return (
    <Part name="Checks" class="is-wide">
      <div class="scrolls" tabIndex={0} role="region" aria-label="Doctor's checks">
        <table>
          <thead><tr><th>check</th><th>status</th><th>detail</th><th>what to do</th></tr></thead>
          <tbody>
            {checks.map((check, at) => {
              const [kind, command] = [kindOf(check.status), commandOf(check)];
              return (
                <tr key={at}>
                  <th scope="row">{oneLine(check.check, 64)}</th>
                  <td><Mark kind={kind}>{oneLine(check.status, 20)}</Mark></td>
                  <td class="health-wraps"><bdi>{oneLine(check.detail, 400)}</bdi></td>
                  <td class="health-wraps">
                    {check.advice === undefined || kind === "good" ? null : <div><bdi>{oneLine(check.advice, 400)}</bdi></div>}
                    {command === undefined || kind === "good" ? null : <Command text={command} />}
                    {check.code === undefined || command === `baton explain ${check.code}` ? null : <Command text={`baton explain ${check.code}`} />}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <p class="dim">The same at a terminal: <Command text="baton doctor" /></p>
    </Part>
  );
}
