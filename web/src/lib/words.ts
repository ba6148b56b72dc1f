// What a person is told of something that went wrong. The server speaks to
// programs too, and names routes; here that becomes what one does on the page.
import type { Problem } from "./types";

const forTheModel = "To send it to the model, put a space before it.";

// Words of the terminal, and where the page has the same.
const instead: Record<string, string> = {
  "/cost": "The cost is shown below each turn.",
  "/intent": "The inspector shows the intents of a turn.",
  "/why": "The inspector shows what the model saw in a turn, and why.",
  "/model": "The model is shown next to Send.",
  "/resume": "The sidebar lists your sessions.",
  "/sessions": "The sidebar lists your sessions.",
  "/tools": "The catalog lists all capabilities. The playground shows what a message finds.",
  "/output": "“Show all” below a call shows its full result.",
  "/quit": "You don't need to end a session. Just leave the page.",
  "/exit": "You don't need to end a session. Just leave the page.",
};

export function told(p: Problem): string {
  if (p.code === "unknown-command") {
    const name = /\/\S+?(?=[;,?]|\s|$)/.exec(p.detail)?.[0] ?? "of that name";
    const near = /did you mean ([^?]+)\?/.exec(p.detail)?.[1];
    return `There is no command ${name}. ${near ? `Did you mean ${near}?` : "Type / to list the commands."} ${forTheModel}`;
  }
  if (p.code === "not-here") {
    const word = /^\/\w+/.exec(p.detail)?.[0] ?? "";
    return `${word} works only in the terminal. ${instead[word] ?? "Type / to list the commands."} ${forTheModel}`;
  }
  if (p.status === 401) return "You are no longer signed in. Sign in and try again.";
  return sentence(p.detail);
}

// sentence leaves out what is for programs alone, and begins and ends as
// sentences do.
export function sentence(detail: string): string {
  const kept = detail.replace(/; (?:or with )?(?:GET|POST|PUT|DELETE) \/api\/\S*[^;]*/g, "").replace(/, or with (?:GET|POST) \/api\/\S+/g, "").trim();
  const begun = /^[a-z]+ /.test(kept) && !/^ken /.test(kept) ? kept[0]!.toUpperCase() + kept.slice(1) : kept;
  return /[\p{L}\p{N})"'”]$/u.test(begun) ? begun + "." : begun;
}
