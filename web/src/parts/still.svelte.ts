// A Still knows whether something has been where it is for long enough to be
// read. A click sooner than that was meant for what was there before, and so was
// the second one of a double click.
const reading = 700; // ms

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
}
