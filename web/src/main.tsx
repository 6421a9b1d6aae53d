// The page begins here: the connection, the keys, the frame, and the screen that the address names.

import { render } from "preact";
import "./styles/tokens.css";
import "./styles/base.css";
import { Frame } from "./Frame.js";
import { Gate } from "./Gate.js";
import { place, startRouter } from "./router.js";
// In this order they pack well: what is alike stands near to each other.
import { TraceScreen } from "./screens/trace/Trace.js";
import { TracesScreen } from "./screens/trace/Traces.js";
import { HealthScreen } from "./screens/health/Health.js";
import { Board } from "./screens/board/Board.js";
import { TaskScreen } from "./screens/task/Task.js";
import { SessionsScreen } from "./screens/session/Sessions.js";
import { SessionScreen } from "./screens/session/Session.js";
import { Boundary } from "./parts/Boundary.js";
import { Empty } from "./parts/States.js";
import { startKeys } from "./state/keys.js";
import { loadSessions, loadTasks, startLive } from "./state/live.js";
import { startRole } from "./state/role.js";
import { tellLooks } from "./state/tabs.js";
import { link } from "./state/store.js";
import { startTheme } from "./state/theme.js";

function Screen() {
  const here = place.value;
  switch (here.screen) {
    case "board":
      return <Board />;
    case "task":
      return <TaskScreen id={here.id} tab={here.tab} />;
    case "sessions":
      return <SessionsScreen />;
    case "session":
      return <SessionScreen id={here.id} />;
    case "traces":
      return <TracesScreen />;
    case "trace":
      return <TraceScreen id={here.id} event={here.event} />;
    case "health":
      return <HealthScreen />;
    case "nowhere":
      return <Empty title="There is nothing here"><p><a href="/">To the board</a></p></Empty>;
  }
}

/** What every screen stands on is asked for again. */
const anew = (): Promise<unknown> => Promise.all([loadTasks(), loadSessions()]);

function Page() {
  const state = link.value;
  if (state.kind === "denied") return <Gate reason={state.reason} />;
  const here = place.value;
  // Elsewhere it begins anew; and what of a screen cannot be drawn leaves the frame around it as it is.
  const key = "id" in here ? `${here.screen} ${here.id}` : here.screen;
  return (
    <Boundary what="The page" again={anew}>
      <Frame><Boundary key={key} what="This screen" again={anew}><Screen /></Boundary></Frame>
    </Boundary>
  );
}

// What is let go beside a place for it, a file or a link, does not take the place of the page. Text may be dropped where somebody writes.
const isField = (target: EventTarget | null): boolean => target instanceof Element && target.closest("input, textarea") !== null;
for (const kind of ["dragover", "drop"] as const) {
  addEventListener(kind, (event) => { if (event.dataTransfer?.types.includes("Files") || !isField(event.target)) event.preventDefault(); });
}
startTheme();
startRouter();
startKeys();
startLive();
tellLooks();
startRole();
const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(<Page />, root);
}
