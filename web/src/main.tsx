import { render } from "preact";
import { takeToken } from "./api";
import { startClock } from "./parts";
import { App } from "./shell";

takeToken();
startClock();
render(<App />, document.getElementById("app")!);
