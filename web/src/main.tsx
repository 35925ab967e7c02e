import { render } from "preact";
import { begin } from "./api/live";
import { listen } from "./keys/keys";
import "./look/base.css";
import "./look/parts.css";
import { keep } from "./runs/store";
import { App } from "./shell/App";
import { followLinks } from "./shell/route";

followLinks();
listen();
keep();
void begin();
const root = document.getElementById("app");
if (root) render(<App />, root);
