// States, reasons and ends of a session in plain words.

import type { Session, StateKind, TerminationInfo } from "@baton/sdk";
import { bytes, span } from "../../state/format.js";

export type Kind = "good" | "warn" | "bad" | "off" | "busy";

const STATES: { readonly [state in StateKind]: readonly [string, Kind] } = {
  idle: ["not started", "off"],
  starting: ["starting", "busy"],
  ready: ["ready", "good"],
  calling_llm: ["working", "busy"],
  processing_response: ["reading the answer", "busy"],
  executing_tools: ["running tools", "busy"],
  post_tools_hook: ["running hooks", "busy"],
  error: ["failed, tries again", "bad"],
  stopping: ["stopping", "warn"],
  stopped: ["ended", "off"],
};

export const stateWord = (state: string): string => STATES[state as StateKind]?.[0] ?? state;
export const stateKind = (state: string): Kind => STATES[state as StateKind]?.[1] ?? "off";

const REASONS: { readonly [reason: string]: string } = {
  user_input: "a prompt", stream_completed: "the answer is whole", tools_requested: "it asks for tools", tools_completed: "its tools are done",
  hooks_completed: "the hooks are done", stop_requested: "somebody wants its end", harness_exited: "the agent is gone", spawned: "it begins",
  harness_ready: "the agent takes input", llm_failed: "a request failed", tool_failed: "a tool could not be run to its end", hook_failed: "a hook failed",
  retry: "it is tried again", retries_exhausted: "it is not tried again",
};
export const reasonWord = (reason: string): string => REASONS[reason] ?? reason;

/** Why nothing can be sent now; nothing where it can. */
export function whyNoInput(state: string): string | undefined {
  switch (state) {
    case "ready":
      return undefined;
    case "idle":
    case "starting":
      return "The agent is starting. What you write can be sent once it is ready.";
    case "error":
      return "Something failed and is tried again. What you write can be sent once it is ready.";
    case "stopping":
      return "The session is ending.";
    case "stopped":
      return "The session has ended.";
    default:
      return "The agent is at work. What you write can be sent once it is ready.";
  }
}

/** How a session ended: one word that says how well, a sentence, and what is known beside it. */
export interface Ending {
  kind: Kind;
  title: string;
  sentence: string;
  facts: readonly (readonly [string, string])[];
  next: string;
}

const CAUSES: { readonly [cause: string]: readonly [string, string] } = {
  crash: ["The agent's process went down by itself.", "Look at its last words below; then let it go on, or try its task again."],
  spawn: ["The agent could not be started.", "See that its program is installed and its configuration is right: baton agent check."],
  auth: ["The model's side refused the credentials.", "Log the agent in, or set its key; then try again."],
  quota: ["A usage limit was reached.", "Wait until it ends, or use another agent."],
  oom: ["The machine was short of memory, and the kernel killed the agent.", "Give it more memory, or run fewer agents at once."],
  timeout: ["The agent was silent for too long and was ended for that.", "Try again; where it needs longer, raise deadlines.inactivity of the agent."],
  protocol: ["The agent said something that is not of its protocol.", "Check its version: baton agent check."],
};

export function endingOf(info: TerminationInfo | undefined, session: Session | undefined): Ending {
  const facts: (readonly [string, string])[] = [];
  if (!info) {
    const sentence = "Baton itself ended while it ran, and nobody saw its end.";
    return { kind: "warn", title: "Cut short", sentence, facts, next: "Its conversation can go on where the agent remembers it." };
  }
  const isGivenUp = info.cause === "quota" || info.cause === "auth";
  if (info.cause) facts.push(["cause", info.cause]);
  if (info.exit_code !== undefined) facts.push(["exit code", String(info.exit_code)]);
  if (info.signal && !isGivenUp) facts.push(["signal", `${info.signal.number} (${info.signal.name})`]);
  if (info.resets_at) facts.push(["the limit ends", info.resets_at]);
  if (info.last_tool) facts.push(["last tool", info.last_tool]);
  if (info.duration_ms !== undefined) facts.push(["after", span(info.duration_ms)]);
  if (info.max_rss_bytes !== undefined) facts.push(["memory", `${bytes(info.max_rss_bytes)} at most`]);
  if (info.cpu_ms !== undefined) facts.push(["processor", span(info.cpu_ms)]);
  switch (info.reason) {
    case "completed":
      return { kind: "good", title: "Completed", sentence: "The agent ended by itself, with nothing open.", facts, next: "" };
    case "terminated": {
      const isCut = session?.["cutShort"] === true || info.duration_ms === undefined;
      const sentence = isCut ? "Baton ended, and with it the session." : "Baton stopped it: a person wanted that, or its work was done.";
      return { kind: "off", title: "Ended by Baton", sentence, facts, next: isCut ? "Its conversation can go on where the agent remembers it." : "" };
    }
    default: {
      const [cause, next] = CAUSES[info.cause ?? ""] ?? ["The agent failed.", "Look at its last words below."];
      return { kind: "bad", title: "Failed", sentence: info.message ? `${cause} ${sentenceOf(info.message)}` : cause, facts, next };
    }
  }
}

const sentenceOf = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1, 2000)}${/[.!?]$/.test(text) ? "" : "."}`;

/** The end of a session in a line, for a list. */
export function endWord(session: Session): string {
  const info = session.terminationInfo;
  if (!info) return session["cutShort"] === true ? "cut short: Baton ended" : "";
  if (info.reason === "completed") return "completed";
  if (info.reason === "terminated") return session["cutShort"] === true || info.duration_ms === undefined ? "ended with Baton" : "ended by Baton";
  const how = info.exit_code !== undefined ? `exit code ${info.exit_code}` : info.signal ? info.signal.name : "";
  return ["failed", info.cause, how].filter((part) => part !== undefined && part !== "").join(", ");
}

export const endKind = (session: Session): Kind => {
  const info = session.terminationInfo;
  if (!info) return "warn";
  return info.reason === "completed" ? "good" : info.reason === "error" ? "bad" : "off";
};
