// A Still knows whether something has been where it is for long enough to be
// read. A click sooner than that was meant for what was there before, and so was
// the second one of a double click.
const reading = 800; // ms

export class Still {
  now = $state(true);

  // begin says that it appeared or moved, and gives what ends the wait: an effect
  // returns it.
  begin(): () => void {
    this.now = false;
    const timer = setTimeout(() => (this.now = true), reading);
    return () => clearTimeout(timer);
  }

  // means says whether a click is meant for what is there now.
  means(e: MouseEvent): boolean {
    return this.now && e.detail < 2;
  }

  // guard keeps clicks that are not from the buttons in a node: {@attach still.guard}.
  guard = (node: HTMLElement) => {
    const only = (e: MouseEvent) => {
      if (this.means(e) || !(e.target as Element).closest("button")) return;
      e.preventDefault();
      e.stopPropagation();
    };
    node.addEventListener("click", only, { capture: true });
    return () => node.removeEventListener("click", only, { capture: true });
  };

  #entered = Infinity; // when the focus came into the card
  #led = -Infinity; // when g was typed: the letter after it names a view

  // enter is for onfocusin of a card. Nothing but a person moves the focus there.
  enter = (e: FocusEvent) => {
    if (!(e.currentTarget as Node).contains(e.relatedTarget as Node | null)) this.#entered = performance.now();
  };

  // letter returns the letter that a person typed to answer the card. It counts only
  // where the card, and the focus in it, were there for long enough.
  letter(e: KeyboardEvent): string {
    if (e.metaKey || e.ctrlKey || e.altKey || e.repeat || /^(INPUT|TEXTAREA|SELECT)$/.test((e.target as Element).tagName)) return "";
    const now = performance.now();
    if (e.key === "g") this.#led = now;
    return this.now && now - this.#entered >= reading && now - this.#led > 1500 ? e.key : "";
  }
}
