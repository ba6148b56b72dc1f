// What is being written and was not sent yet, for each session, while the browser's
// tab is open: going elsewhere and coming back loses nothing.
import { clip } from "../../lib/odd";

const key = (session: string) => "ken-draft:" + (session || "new");
const longest = 100_000; // characters; storage is small

export function draftOf(session: string): string {
  try {
    return sessionStorage.getItem(key(session)) ?? "";
  } catch {
    return ""; // the browser keeps nothing
  }
}

// firstWords are what a text is called by.
export const firstWords = (text: string) => clip(text.trim().replace(/\s+/g, " "), 120);

export function keepDraft(session: string, text: string) {
  try {
    if (text && text.length <= longest) sessionStorage.setItem(key(session), text);
    else sessionStorage.removeItem(key(session));
  } catch { /* full, or forbidden: then it is not kept */ }
}
