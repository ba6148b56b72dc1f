// What of Markdown is safe to draw, and how. Nothing here needs the parser, which
// is fetched after the first picture of the page.

// safe gives the address of a link where a person can judge it, and nothing
// where it does something else than lead somewhere.
export function safe(href: string): string | undefined {
  try {
    const u = new URL(href);
    return u.protocol === "https:" || u.protocol === "http:" || u.protocol === "mailto:" ? u.href : undefined;
  } catch {
    return undefined;
  }
}

const known: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", ndash: "–", mdash: "—", hellip: "…", middot: "·", times: "×", rarr: "→", larr: "←" };

// plain puts characters where their names stand.
export function plain(s: string): string {
  if (!s.includes("&")) return s;
  return s.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]+));/gi, (all, ten?: string, hex?: string, name?: string) => {
    if (name) return Object.hasOwn(known, name) ? known[name]! : all;
    const n = ten ? Number(ten) : parseInt(hex!, 16);
    return n > 0x1f && n <= 0x10ffff && (n < 0xd800 || n > 0xdfff) ? String.fromCodePoint(n) : all;
  });
}
