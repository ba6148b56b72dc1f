// base is the beginning of all addresses of the demo, which is a page load of its
// own; empty outside of it. Views and links leave it out. A link with
// rel="external" leads in or out.
export const base = typeof location !== "undefined" && /^\/demo(\/|$)/.test(location.pathname) ? "/demo" : "";
