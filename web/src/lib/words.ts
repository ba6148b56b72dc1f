// What a person is told of something that went wrong. The server speaks to
// programs too, and names routes; here that becomes what one does on the page.
import type { Problem } from "./types";

const forTheModel = "To say it to the model, put a blank before it.";

// Words of the terminal, and where the page has the same.
const instead: Record<string, string> = {
  "/cost": "Below each turn stands what it cost.",
  "/intent": "The inspector names the intents of a turn.",
  "/why": "The inspector says what was shown for a turn, and why.",
  "/model": "The model is named beside Send.",
  "/resume": "Your sessions are listed at the side.",
  "/sessions": "Your sessions are listed at the side.",
  "/tools": "The catalog has all capabilities; the playground shows what a message finds.",
  "/output": "“Show all” below a call reads its whole result.",
  "/quit": "A session needs no end: just leave it.",
  "/exit": "A session needs no end: just leave it.",
};

export function told(p: Problem): string {
  if (p.code === "unknown-command") {
    const name = /\/\S+?(?=[;,?]|\s|$)/.exec(p.detail)?.[0] ?? "of that name";
    const near = /did you mean ([^?]+)\?/.exec(p.detail)?.[1];
    return `There is no command ${name}. ${near ? `Did you mean ${near}?` : "Type / to see what there is."} ${forTheModel}`;
  }
  if (p.code === "not-here") {
    const word = /^\/\w+/.exec(p.detail)?.[0] ?? "";
    return `${word} is a word of the terminal. ${instead[word] ?? "Type / to see what there is here."} ${forTheModel}`;
  }
  if (p.status === 401) return "You are not signed in any more. Sign in, and do it again.";
  return sentence(p.detail);
}

// sentence leaves out what is for programs alone, and begins and ends as
// sentences do.
export function sentence(detail: string): string {
  const kept = detail.replace(/; (?:or with )?(?:GET|POST|PUT|DELETE) \/api\/\S*[^;]*/g, "").replace(/, or with (?:GET|POST) \/api\/\S+/g, "").trim();
  const begun = /^[a-z]+ /.test(kept) && !/^ken /.test(kept) ? kept[0]!.toUpperCase() + kept.slice(1) : kept;
  return /[\p{L}\p{N})"'”]$/u.test(begun) ? begun + "." : begun;
}
