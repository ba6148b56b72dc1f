import "./app.css";
import { mount } from "svelte";
import App from "./App.svelte";

// What stands there until now is what a browser paints before this is loaded.
const target = document.getElementById("app")!;
target.replaceChildren();
mount(App, { target });
