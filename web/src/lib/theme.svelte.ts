// Light, dark, or as the system has it. Remembered in this browser.
import { recall, remember } from "./remember";

const names = ["system", "light", "dark"] as const;
type Name = (typeof names)[number];

class Theme {
  name = $state<Name>(names.find((n) => n === recall("theme")) ?? "system");
  get sign() {
    return { system: "◐", light: "☀", dark: "☾" }[this.name];
  }
  next() {
    this.name = names[(names.indexOf(this.name) + 1) % names.length]!;
    remember("theme", this.name);
    this.show();
  }
  show() {
    if (this.name === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.name;
  }
}

export const theme = new Theme();
theme.show();
