// Where the person is. Views read `route`, and links are plain <a href>: a
// click on one is taken over where it leads to the page itself.

import { base } from "./base";

const within = () => location.pathname.slice(base.length) || "/";

function parts(path: string): string[] {
  return path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part; // somebody typed it
    }
  });
}

class Route {
  path = $state(within());
  search = $state(location.search);
  view = $derived(parts(this.path)[0] ?? "chat");
  rest = $derived(parts(this.path).slice(1).join("/")); // an id may have slashes
  query = $derived(new URLSearchParams(this.search));
}

export const route = new Route();

function read() {
  route.path = within();
  route.search = location.search;
}

export function go(to: string, how: "push" | "replace" = "push") {
  if (to === within() + location.search) return;
  history[how === "push" ? "pushState" : "replaceState"](null, "", base + to);
  read();
}

// setQuery changes parameters of the address without leaving the view.
export function setQuery(change: Record<string, string | undefined>) {
  const q = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(change)) {
    if (value) q.set(name, value);
    else q.delete(name);
  }
  const text = q.toString();
  go(within() + (text ? "?" + text : ""), "replace");
}

addEventListener("popstate", read);
document.addEventListener("click", (e) => {
  const a = (e.target as Element | null)?.closest?.("a");
  if (!a || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  if (a.target || a.origin !== location.origin || a.hasAttribute("download") || a.rel === "external" || /^\/(api|auth)\//.test(a.pathname)) return;
  e.preventDefault();
  go(a.pathname + a.search);
});
