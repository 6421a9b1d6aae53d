// A component that is drawn again only when something that it is given is another one.

import { Component, type ComponentChildren, type FunctionComponent } from "preact";

export function memo<P extends object>(Draw: (props: P) => ComponentChildren): new (props: P) => Component<P> {
  const Inner = Draw as FunctionComponent<P>;
  return class extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const [a, b] = [this.props as { [name: string]: unknown }, next as { [name: string]: unknown }];
      return Object.keys(b).some((name) => a[name] !== b[name]) || Object.keys(a).some((name) => !(name in b));
    }

    override render() {
      return <Inner {...this.props} />;
    }
  };
}
