// What is being written and was not sent yet, for each session, while the browser's
// tab is open: going elsewhere and coming back loses nothing.
import { clip } from "../../lib/odd";
import type { Picture } from "./pictures";

const key = (session: string) => "ken-draft:" + (session || "new");
const longest = 100_000; // characters; storage is small

export class Draft {
  #session: string;
  #text = $state("");
  pictures = $state.raw<Picture[]>([]); // not kept when the page is loaded anew

  constructor(session: string) {
    this.#session = session;
    this.#text = written(session);
  }

  get text() {
    return this.#text;
  }

  set text(text: string) {
    this.#text = text;
    keep(this.#session, text);
  }

  // take takes over what another has.
  take(other: Draft) {
    [this.text, this.pictures, other.text, other.pictures] = [other.text, other.pictures, "", []];
  }

  // giveBack puts what was not sent where it was written, unless something else is
  // written there by now.
  giveBack(text: string, pictures: Picture[]) {
    if (!this.text && !this.pictures.length) [this.text, this.pictures] = [text, pictures];
  }
}

const drafts = new Map<string, Draft>();

// draftOf is the one draft of a session, whoever asks.
export function draftOf(session: string): Draft {
  let draft = drafts.get(session);
  if (!draft) drafts.set(session, (draft = new Draft(session)));
  return draft;
}

// written is the text of a draft.
export function written(session: string): string {
  try {
    return sessionStorage.getItem(key(session)) ?? "";
  } catch {
    return ""; // the browser keeps nothing
  }
}

function keep(session: string, text: string) {
  try {
    if (text && text.length <= longest) sessionStorage.setItem(key(session), text);
    else sessionStorage.removeItem(key(session));
  } catch { /* full, or forbidden: then it is not kept */ }
}

// firstWords are what a text is called by.
export const firstWords = (text: string) => clip(text.trim().replace(/\s+/g, " "), 120);
