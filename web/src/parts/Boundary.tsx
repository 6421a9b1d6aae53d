// What cannot be drawn stands alone: the rest of the page lives on beside it. Nothing of it is logged.

import { Component, type ComponentChildren } from "preact";
import { Broken } from "./States.js";

interface Props {
  what: string;
  /** Asks anew for what could not be drawn; once that has come, it is tried again. */
  again?: () => Promise<unknown>;
  /** Takes the place of the whole words where there is little room. */
  instead?: ComponentChildren;
  /** What is drawn: where another takes its place, that is tried. */
  of?: unknown;
  children: ComponentChildren;
}

export class Boundary extends Component<Props, { error?: unknown; of?: unknown }> {
  static override getDerivedStateFromError = (error: unknown) => ({ error });
  static override getDerivedStateFromProps = ({ of }: Props, before: { of?: unknown }) => (of === before.of ? null : { of, error: undefined });

  override render({ what, again, instead, children }: Props, { error }: { error?: unknown }) {
    if (error === undefined) return children;
    if (instead !== undefined) return instead;
    const detail = error instanceof Error ? error.message : String(error);
    const failure = { title: "Something that the server sent is not as this page knows it.", code: undefined, detail, hint: undefined };
    return <Broken what={what} error={failure} retry={() => void Promise.resolve(again?.()).then(() => this.setState({ error: undefined }))} />;
  }
}
