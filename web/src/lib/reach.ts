// reachable is an attachment for an element that may scroll: while part of its
// content is hidden it takes the keyboard's focus, so that the arrow keys scroll
// it. Without anything to scroll it is not a stop on the way.
export function reachable(node: HTMLElement) {
  const look = () => {
    const scrolls = node.scrollHeight > node.clientHeight + 1 || node.scrollWidth > node.clientWidth + 1;
    if (scrolls) node.tabIndex = 0;
    else node.removeAttribute("tabindex");
  };
  const watch = new ResizeObserver(look);
  watch.observe(node);
  return () => watch.disconnect();
}
