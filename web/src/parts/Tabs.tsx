// Tabs, with the arrow keys between them.

export interface Tab {
  id: string;
  label: string;
}

export function Tabs({ label, tabs, current, onChoose }: { label: string; tabs: readonly Tab[]; current: string; onChoose: (id: string) => void }) {
  const step = (by: number) => {
    const at = tabs.findIndex((tab) => tab.id === current);
    const next = tabs[(at + by + tabs.length) % tabs.length];
    if (!next) return;
    onChoose(next.id);
    document.getElementById(`tab-${next.id}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={(event) => {
      if (event.key === "ArrowRight") step(1);
      else if (event.key === "ArrowLeft") step(-1);
      else return;
      event.preventDefault();
    }}>
      {tabs.map((tab) => (
        <button key={tab.id} id={`tab-${tab.id}`} type="button" role="tab" aria-selected={tab.id === current} aria-controls="panel"
          tabIndex={tab.id === current ? 0 : -1} onClick={() => onChoose(tab.id)}>{tab.label}</button>
      ))}
    </div>
  );
}
