// What the page says of a job.
import type { Job } from "../../lib/types";

export const states = ["scheduled", "queued", "running", "waiting", "done", "failed", "cancelled", "unknown"] as const;
export const ended = (j: Job) => ["done", "failed", "cancelled", "unknown"].includes(j.state);
export const mayRetry = (j: Job) => !j.schedule && ["failed", "cancelled", "unknown"].includes(j.state);

// tone is the colour of a state.
export function tone(state: string): string {
  switch (state) {
    case "done": return "good";
    case "failed": return "bad";
    case "waiting": case "unknown": return "warn";
  }
  return "";
}

// meaning says what a state means where its word does not.
export function meaning(j: Job): string {
  switch (j.state) {
    case "queued": return "It starts as soon as there is room.";
    case "waiting": return "It needs approval.";
    case "unknown": return "It was interrupted. It may or may not have had its effect.";
    case "scheduled": return j.schedule ? "It runs again and again: " + j.schedule + "." : "";
  }
  return "";
}

// part is how much of a job is done, from 0 to 1, where that is known.
export function part(j: Job): number | undefined {
  const p = j.progress;
  return p?.total && p.total > 0 ? Math.min(1, Math.max(0, p.done / p.total)) : undefined;
}

// called is what a job calls, in one line.
export const called = (j: Job) => j.target + (j.action ? " " + j.action : "");
