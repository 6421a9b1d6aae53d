// A dialog over the page: the browser's own, with the focus inside and Escape to leave.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  // Before the next key, so that it is the dialog's.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    dialog?.querySelector<HTMLElement>("[autofocus]")?.focus();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={element} aria-label={title} onClose={onClose} onCancel={(event) => {
      // It is gone when whoever opened it says so, and not a moment before: the next one may be opened by the next key.
      event.preventDefault();
      onClose();
    }} onClick={(event) => { if (event.target === element.current) onClose(); }}>
      <div class="dialog">
        <header><h2>{title}</h2><button type="button" class="quiet" aria-label="Close" onClick={onClose}>×</button></header>
        {children}
      </div>
    </dialog>
  );
}
