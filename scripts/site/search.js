// The line before this one defines `entries`: every heading of the site.
const root = document.body.dataset.root;
const query = document.getElementById("query");
const results = document.getElementById("results");
const article = document.querySelector("article");

const folded = entries.map((e) => ({
  title: (e.page + " " + e.heading).toLowerCase(),
  text: e.text.toLowerCase(),
}));

// score counts the words that an entry has: in its title three times as much. Of one or
// two words it must have all, of more than that half: an error message has names of its
// own in it.
function score(i, words) {
  let sum = 0;
  let missing = 0;
  for (const w of words) {
    if (folded[i].title.includes(w)) sum += 3;
    else if (folded[i].text.includes(w)) sum += 1;
    else missing++;
  }
  return missing > (words.length > 2 ? words.length / 2 : 0) ? 0 : sum;
}

function search() {
  const words = query.value.toLowerCase().split(/\s+/).map((w) => w.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "")).filter(Boolean);
  results.hidden = words.length === 0;
  article.hidden = words.length > 0;
  results.replaceChildren();
  if (words.length === 0) return;
  const found = entries
    .map((e, i) => ({ e, s: score(i, words) }))
    .filter((r) => r.s > 0)
    .sort((a, b) => b.s - a.s);
  const count = document.createElement("h1");
  count.textContent = found.length === 0 ? "Nothing found" : `${found.length} found`;
  const list = document.createElement("ul");
  for (const { e } of found.slice(0, 30)) {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = root + e.address;
    link.textContent = e.heading === e.page ? e.page : `${e.page}: ${e.heading}`;
    link.addEventListener("click", () => { query.value = ""; search(); });
    const text = document.createElement("p");
    text.textContent = e.text.slice(0, 160) + (e.text.length > 160 ? "…" : "");
    item.append(link, text);
    list.append(item);
  }
  results.append(count, list);
}

query.addEventListener("input", search);
query.form.addEventListener("submit", (event) => event.preventDefault());
