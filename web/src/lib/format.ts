// Numbers and times as people read them; no line ends between a number and its
// unit. What formats a time is made once: making
// it takes longer than using it.

export const count = (n: number) => n.toLocaleString("en");
export const many = (n: number, one: string, more = one + "s") => count(n) + " " + (n === 1 ? one : more);
export const tokens = (n: number) => (n < 10_000 ? count(n) : n < 1e6 ? (n / 1e3).toFixed(n < 1e5 ? 1 : 0) + "\u00a0k" : (n / 1e6).toFixed(2) + "\u00a0M");
export const dollars = (n: number) => (n === 0 ? "$0" : n < 0.01 ? "$" + n.toFixed(4) : "$" + n.toFixed(2));
export const percent = (n: number) => (100 * n).toFixed(n < 0.1 ? 1 : 0) + "\u00a0%";
export const bytes = (n: number) => (n < 1024 ? many(n, "byte") : n < 1 << 20 ? (n / 1024).toFixed(1) + "\u00a0KiB" : (n / (1 << 20)).toFixed(1) + "\u00a0MiB");
export const micros = (us: number) => (us < 1000 ? Math.round(us) + "\u00a0µs" : us < 1e6 ? (us / 1000).toFixed(1) + "\u00a0ms" : (us / 1e6).toFixed(1) + "\u00a0s");
export const millis = (ms: number) => micros(ms * 1000);

// took is how long something took, where whole milliseconds are fine enough.
export function took(ms: number): string {
  if (ms < 1000) return ms + "\u00a0ms";
  if (ms < 59_950) return (ms / 1000).toFixed(1) + "\u00a0s";
  const s = Math.round(ms / 1000);
  return Math.floor(s / 60) + "\u00a0min " + (s % 60) + "\u00a0s";
}

function formatter(options: Intl.DateTimeFormatOptions): (at: string | number) => string {
  let made: Intl.DateTimeFormat | undefined;
  return (at) => {
    const t = new Date(at).getTime();
    return Number.isNaN(t) ? "" : (made ??= new Intl.DateTimeFormat([], options)).format(t);
  };
}

// All of them are as the browser's language writes them, with twelve hours or
// twenty-four: times side by side are never of both sorts.
export const clock = formatter({ timeStyle: "medium" });
export const hour = formatter({ timeStyle: "short" });
export const shortDay = formatter({ weekday: "short", day: "numeric", month: "short" });
export const day = formatter({ dateStyle: "full" });
export const moment = formatter({ dateStyle: "medium", timeStyle: "short" });
export const exactly = formatter({ dateStyle: "full", timeStyle: "long" });
const today = formatter({ dateStyle: "short" });

// A day of the server's, as in 2026-11-15, is the same day wherever it is read.
export const dayOf = formatter({ weekday: "short", day: "numeric", month: "short", timeZone: "UTC" });
export const dateOf = formatter({ day: "numeric", month: "short", timeZone: "UTC" });

// when is a time of today, or one with its day.
export const when = (at: string | number, now = Date.now()) => (today(at) === today(now) ? hour(at) : moment(at));

// ago says how long ago something was while that says more than the time does.
export function ago(at: string | number, now = Date.now()): string {
  const s = (now - new Date(at).getTime()) / 1000;
  if (Number.isNaN(s)) return "";
  if (s < 60) return "just now";
  if (s < 3600) return Math.floor(s / 60) + "\u00a0min ago";
  if (s < 86_400) return Math.floor(s / 3600) + "\u00a0h ago";
  if (s < 604_800) return Math.floor(s / 86_400) + "\u00a0d ago";
  return moment(at);
}
