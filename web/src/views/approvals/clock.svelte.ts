import { many } from "../../lib/format";

// What time it is, for texts that count down: a new one every second.
class Clock {
  now = $state(Date.now());

  // run keeps the clock going until the function that it returns is called.
  run(): () => void {
    this.now = Date.now();
    const each = setInterval(() => (this.now = Date.now()), 1000);
    return () => clearInterval(each);
  }
}

export const clock = new Clock();

// left says how long it is until then, as people say it.
export function left(until: string, now: number): string {
  const s = Math.ceil((new Date(until).getTime() - now) / 1000);
  if (Number.isNaN(s)) return "does not expire";
  if (s <= 0) return "expired";
  if (s < 60) return many(s, "second") + " left";
  if (s < 600) return many(Math.floor(s / 60), "minute") + (s % 60 ? " " + many(s % 60, "second") : "") + " left";
  if (s < 7200) return many(Math.round(s / 60), "minute") + " left";
  if (s < 172_800) return many(Math.round(s / 3600), "hour") + " left";
  return many(Math.round(s / 86_400), "day") + " left";
}
