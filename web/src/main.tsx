import { render } from "preact";
import { takeToken } from "./api";
import { App } from "./shell";

takeToken();
render(<App />, document.getElementById("app")!);
