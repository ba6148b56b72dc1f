// What Ken asks of a page. It runs in a world of its own: it shares the page's
// elements, and none of its variables.
(() => {
  if (globalThis.ken) return globalThis.ken;
  const refs = new WeakMap(), elements = new Map();
  let next = 1;

  const ref = (el) => {
    let name = refs.get(el);
    if (!name) {
      name = "e" + next++;
      refs.set(el, name);
      elements.set(name, new WeakRef(el));
    }
    return name;
  };

  const squeeze = (text) => (text || "").replace(/\s+/g, " ").trim();
  const clip = (text, most) => text.length > most ? text.slice(0, most) + "…" : text;
  const visible = (el) => el.checkVisibility ? el.checkVisibility({ opacityProperty: true, visibilityProperty: true }) : true;

  const skipped = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "META", "LINK", "SVG", "svg", "CANVAS", "OBJECT", "EMBED"]);
  const blocks = new Set(["ADDRESS", "ARTICLE", "ASIDE", "BLOCKQUOTE", "BODY", "CAPTION", "DD", "DETAILS", "DIALOG", "DIV", "DL", "DT", "FIELDSET", "FIGCAPTION", "FIGURE",
    "FOOTER", "FORM", "H1", "H2", "H3", "H4", "H5", "H6", "HEADER", "HGROUP", "HR", "LEGEND", "LI", "MAIN", "MENU", "NAV", "OL", "P", "PRE", "SECTION", "SUMMARY", "TABLE", "TR", "UL", "OPTGROUP"]);
  const roles = new Set(["button", "link", "tab", "checkbox", "radio", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "switch", "textbox", "searchbox", "combobox", "slider", "spinbutton", "treeitem"]);

  const kind = (el) => {
    switch (el.tagName) {
      case "A": return el.hasAttribute("href") ? "link" : "";
      case "BUTTON": return "button";
      case "SUMMARY": return "button";
      case "TEXTAREA": return "input";
      case "SELECT": return "select";
      case "INPUT": {
        const type = (el.type || "text").toLowerCase();
        if (type === "hidden") return "";
        if (["submit", "button", "reset", "image"].includes(type)) return "button";
        return ["checkbox", "radio", "file"].includes(type) ? type : "input";
      }
    }
    const role = (el.getAttribute("role") || "").toLowerCase();
    if (roles.has(role)) return ["textbox", "searchbox"].includes(role) ? "input" : role;
    if (el.isContentEditable && !(el.parentElement && el.parentElement.isContentEditable)) return "input";
    return el.hasAttribute("onclick") ? "button" : "";
  };

  const named = (el) => {
    const by = el.getAttribute("aria-labelledby");
    if (by) {
      const text = squeeze(by.split(/\s+/).map((id) => el.ownerDocument.getElementById(id)?.textContent || "").join(" "));
      if (text) return text;
    }
    const own = squeeze(el.getAttribute("aria-label"));
    if (own) return own;
    if (el.labels && el.labels.length) {
      const text = squeeze([...el.labels].map((l) => l.innerText).join(" "));
      if (text) return text;
    }
    if (el.tagName === "INPUT" && ["submit", "button", "reset"].includes(el.type)) return squeeze(el.value) || el.type;
    const plain = ["INPUT", "TEXTAREA", "SELECT"].includes(el.tagName) ? "" : squeeze(el.innerText);
    if (plain) return plain;
    const img = el.querySelector && el.querySelector("img[alt], svg title");
    return squeeze(el.getAttribute("placeholder") || el.getAttribute("alt") || el.getAttribute("title") || (img && (img.getAttribute("alt") || img.textContent)) || el.getAttribute("name"));
  };

  const control = (el, what) => {
    const name = clip(named(el), 200), mark = "[" + what + " " + ref(el) + (name ? ": " + name : "");
    const off = el.disabled ? " (disabled)" : "";
    switch (what) {
      case "input": {
        if (el.type === "password") return mark + (el.value ? " = (hidden)" : "") + off + "]";
        const value = squeeze(el.value ?? el.innerText);
        return mark + (value ? " = " + JSON.stringify(clip(value, 500)) : "") + off + "]";
      }
      case "select": {
        const all = [...el.options], chosen = all.filter((o) => o.selected).map((o) => squeeze(o.label));
        const list = all.slice(0, 30).map((o) => squeeze(o.label)).join(" | ") + (all.length > 30 ? " | … " + (all.length - 30) + " more" : "");
        return mark + " = " + JSON.stringify(chosen.join(", ")) + " of " + list + off + "]";
      }
      case "checkbox": case "radio": case "switch":
        return mark + ((el.checked ?? el.getAttribute("aria-checked") === "true") ? " (on)" : " (off)") + off + "]";
      case "file":
        return mark + (el.files && el.files.length ? " = " + [...el.files].map((f) => f.name).join(", ") : "") + off + "]";
    }
    return mark + off + "]";
  };

  const frame = (el) => {
    try { return el.contentDocument && el.contentDocument.body; } catch { return null; }
  };

  // text writes what a person would read, with the references of what can be
  // used. Text that is not shown is left out.
  const text = (root, most) => {
    const out = [];
    let size = 0, line = "", cut = false;
    const end = (blank) => {
      const one = line.replace(/[ \t]+/g, " ").trim();
      line = "";
      if (!one) {
        if (blank && out.length && out[out.length - 1] !== "") out.push("");
        return;
      }
      size += one.length + 1;
      if (size > most) { cut = true; return; }
      out.push(one);
    };
    const walk = (node, pre) => {
      if (cut) return;
      if (node.nodeType === 3) {
        if (pre) {
          const parts = node.data.split("\n");
          parts.forEach((p, i) => { if (i) { out.push(line); size += line.length + 1; line = ""; if (size > most) cut = true; } line += p; });
        } else line += node.data.replace(/\s+/g, " ");
        return;
      }
      if (node.nodeType !== 1 || skipped.has(node.tagName)) return;
      if (node.tagName === "BR") { end(); return; }
      if (!visible(node) && getComputedStyle(node).display !== "contents") return;
      const what = kind(node);
      if (what && what !== "link" && !(what === "button" && node.querySelector("a[href],input,select,textarea,table"))) {
        line += " " + control(node, what) + " ";
        return;
      }
      if (node.tagName === "IMG") { const alt = squeeze(node.alt); if (alt) line += " [image: " + clip(alt, 200) + "] "; return; }
      if (node.tagName === "IFRAME" || node.tagName === "FRAME") {
        const body = frame(node);
        end();
        if (body) { for (const c of body.childNodes) walk(c); end(); } else { line = "[frame of another site: " + clip(node.src || "", 200) + "]"; end(); }
        return;
      }
      if (node.tagName === "TABLE" && !node.querySelector("table")) { end(true); for (const row of rows(node)) { line = row; end(); if (cut) return; } end(true); return; }
      const block = blocks.has(node.tagName);
      if (block) end(true);
      if (/^H[1-6]$/.test(node.tagName)) line += "#".repeat(+node.tagName[1]) + " ";
      if (node.tagName === "LI") line += "- ";
      if (what === "link") line += "[";
      for (const c of (node.shadowRoot || node).childNodes) walk(c, pre || node.tagName === "PRE");
      if (node.shadowRoot) for (const c of node.childNodes) walk(c, pre);
      if (what === "link") line += "](" + ref(node) + ")";
      if (block) end(true);
    };
    walk(root, false);
    end();
    return { text: out.join("\n").replace(/\n{3,}/g, "\n\n"), cut };
  };

  // cell writes a cell of a table with the references of what can be used.
  const cell = (td) => {
    let said = squeeze(td.innerText);
    const used = [...td.querySelectorAll("a[href],button,input,select,textarea")].filter(visible).slice(0, 10);
    for (const el of used) {
      const what = kind(el);
      if (!what) continue;
      said += what === "link" ? " (" + ref(el) + ")" : " " + control(el, what);
    }
    return said.replace(/\|/g, "\\|");
  };
  const rows = (table) => {
    const out = [];
    if (table.caption) out.push("Table: " + squeeze(table.caption.innerText));
    let first = true;
    for (const tr of table.rows) {
      if (!visible(tr)) continue;
      const cells = [...tr.cells].map(cell);
      if (!cells.length) continue;
      out.push("| " + cells.join(" | ") + " |");
      if (first) { out.push("|" + " --- |".repeat(cells.length)); first = false; }
    }
    return out;
  };

  const bounded = (lines, most) => {
    let size = 0, n = 0;
    for (; n < lines.length && size + lines[n].length + 1 <= most; n++) size += lines[n].length + 1;
    return { text: lines.slice(0, n).join("\n"), cut: n < lines.length };
  };

  const all = (root, selector) => {
    const out = [...root.querySelectorAll(selector)];
    for (const f of root.querySelectorAll("iframe,frame")) { const body = frame(f); if (body) out.push(...all(body, selector)); }
    return out;
  };

  const find = (name) => {
    if (/^e[0-9]+$/.test(name)) {
      const el = elements.get(name) && elements.get(name).deref();
      if (!el) return { error: "reference " + name + " is not of the last read of this page" };
      if (!el.isConnected) return { error: "element " + name + " is no longer on the page" };
      return { el };
    }
    let list;
    try { list = [...document.querySelectorAll(name)]; } catch { return { error: "the selector cannot be read" }; }
    if (!list.length) return { error: "no element matches the selector" };
    const seen = list.filter(visible);
    if (seen.length > 1) return { error: seen.length + " elements match the selector" };
    return { el: seen[0] || list[0] };
  };

  // findAll finds what a read is to show: a selector may match several elements.
  const findAll = (name) => {
    if (/^e[0-9]+$/.test(name)) { const found = find(name); return found.error ? found : { list: [found.el] }; }
    let list;
    try { list = [...document.querySelectorAll(name)]; } catch { return { error: "the selector cannot be read" }; }
    if (!list.length) return { error: "no element matches the selector" };
    const outer = list.filter((el) => !list.some((o) => o !== el && o.contains(el)));
    const seen = outer.filter(visible);
    return { list: seen.length ? seen : outer.slice(0, 1) };
  };

  const said = (el) => (kind(el) || el.tagName.toLowerCase()) + (named(el) ? " " + JSON.stringify(clip(named(el), 80)) : "");

  globalThis.ken = {
    ref,
    // read reads the page, or one element.
    read(as, name, most) {
      let roots = [document.body || document.documentElement];
      if (name) { const found = findAll(name); if (found.error) return { error: found.error }; roots = found.list; }
      const about = { url: location.href, title: clip(squeeze(document.title), 500), type: document.contentType, state: document.readyState };
      if (!roots[0]) return { ...about, text: "" };
      const every = (selector) => roots.flatMap((root) => (root.matches(selector) ? [root] : []).concat(all(root, selector)));
      let r;
      switch (as) {
        case "links": {
          const lines = every("a[href]").filter(visible).map((a) => ref(a) + " " + (clip(named(a), 200) || "(no text)") + " -> " + clip(a.href, 2000));
          r = bounded(lines, most);
          break;
        }
        case "tables": {
          const lines = [];
          for (const t of every("table")) if (visible(t) && !t.querySelector("table")) lines.push(...rows(t), "");
          r = bounded(lines, most);
          break;
        }
        default: {
          const texts = [];
          let left = most, cut = false;
          for (const root of roots) {
            const one = text(root, left);
            texts.push(one.text);
            left -= one.text.length + 2;
            cut = cut || one.cut;
            if (cut || left <= 0) break;
          }
          r = { text: texts.join("\n\n"), cut: cut || texts.length < roots.length };
        }
      }
      return { ...about, ...r };
    },
    about: () => ({ url: location.href, title: clip(squeeze(document.title), 500), type: document.contentType, state: document.readyState }),
    // ready reports whether a text or an element is there.
    ready(words, name) {
      if (words && !squeeze(document.body && document.body.innerText).includes(squeeze(words))) return false;
      if (name) { const found = find(name); return !!found.el && visible(found.el); }
      return true;
    },
    // aim scrolls an element into view and returns where to click it.
    aim(name) {
      const { el, error } = find(name);
      if (error) return { error };
      const called = said(el);
      if (el.disabled) return { error: called + " is disabled" };
      if (!visible(el)) return { error: called + " is not visible" };
      el.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
      const at = el.getClientRects()[0];
      if (!at || !at.width || !at.height) return { error: called + " has no size" };
      let x = at.left + at.width / 2, y = at.top + at.height / 2;
      let top = el.ownerDocument.elementFromPoint(x, y);
      while (top && top.shadowRoot && top.shadowRoot.elementFromPoint(x, y) && top.shadowRoot.elementFromPoint(x, y) !== top) top = top.shadowRoot.elementFromPoint(x, y);
      const label = el.labels && [...el.labels].some((l) => l.contains(top));
      if (top && !el.contains(top) && !top.contains(el) && !label && !(el.getRootNode() !== document && el.getRootNode().host && el.getRootNode().host.contains(top)))
        return { error: called + " is covered by " + said(top) };
      for (let w = el.ownerDocument.defaultView; w && w !== w.parent && w.frameElement; w = w.parent) { const r = w.frameElement.getBoundingClientRect(); x += r.left; y += r.top; }
      return { x, y, called };
    },
    // hold focuses a field and selects what is in it.
    hold(name) {
      const { el, error } = find(name);
      if (error) return { error };
      const called = said(el), what = kind(el);
      if (what !== "input") return { error: called + " cannot be filled" + (what === "select" ? "; use select" : what === "file" ? "; use upload" : what === "checkbox" || what === "radio" ? "; use click" : "") };
      if (el.disabled || el.readOnly) return { error: called + " is disabled or read-only" };
      el.scrollIntoView({ block: "center", behavior: "instant" });
      el.focus();
      const typed = ["date", "time", "datetime-local", "month", "week", "color", "range"].includes(el.type);
      if (el.select && !typed) el.select();
      else if (!typed) { const range = document.createRange(); range.selectNodeContents(el); const s = getSelection(); s.removeAllRanges(); s.addRange(range); }
      return { called, typed, empty: !(el.value ?? el.innerText) };
    },
    // put sets a field that takes no typing, such as a date.
    put(name, value) {
      const { el, error } = find(name);
      if (error) return { error };
      el.value = value;
      el.dispatchEvent(new Event("input", { bubbles: true }));
      el.dispatchEvent(new Event("change", { bubbles: true }));
      return el.value === value ? { called: said(el) } : { error: said(el) + " does not take this value" };
    },
    value(name) { const { el, error } = find(name); return error ? { error } : { value: el.value ?? el.innerText }; },
    choose(name, wanted) {
      const { el, error } = find(name);
      if (error) return { error };
      const called = said(el);
      if (el.tagName !== "SELECT") return { error: called + " is no list to select from; use click" };
      if (el.disabled) return { error: called + " is disabled" };
      const options = [...el.options], picked = new Set();
      for (const w of wanted) {
        const o = options.find((o) => o.value === w) || options.find((o) => squeeze(o.label) === squeeze(w));
        if (!o) return { error: called + " has no option " + JSON.stringify(clip(w, 80)) + "; there are: " + clip(options.map((o) => squeeze(o.label)).join(", "), 1000) };
        if (o.disabled) return { error: "option " + JSON.stringify(clip(w, 80)) + " is disabled" };
        picked.add(o);
      }
      if (picked.size > 1 && !el.multiple) return { error: called + " takes one option" };
      for (const o of options) o.selected = picked.has(o);
      el.dispatchEvent(new Event("input", { bubbles: true }));
      el.dispatchEvent(new Event("change", { bubbles: true }));
      return { called, chosen: [...picked].map((o) => squeeze(o.label)).join(", ") };
    },
    element(name) { const { el, error } = find(name); if (error) throw new Error(error); return el; },
    box(name) {
      const { el, error } = find(name);
      if (error) return { error };
      el.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
      const r = el.getBoundingClientRect();
      return r.width && r.height ? { x: r.left + scrollX, y: r.top + scrollY, width: r.width, height: r.height } : { error: said(el) + " has no size" };
    },
    isFile(name) { const { el, error } = find(name); return error ? { error } : el.tagName === "INPUT" && el.type === "file" ? { called: said(el), many: el.multiple } : { error: said(el) + " takes no files" }; },
    tick: () => new Promise((done) => setTimeout(() => done(true), 60)),
  };
  return globalThis.ken;
})()
