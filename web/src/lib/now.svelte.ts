import { createSubscriber } from "svelte/reactivity";

const later = createSubscriber((update) => {
  const each = setInterval(update, 30_000);
  return () => clearInterval(each);
});

// now is the time, for texts that say how long ago something was: what is drawn
// with it is drawn again while it is shown.
export function now(): number {
  later();
  return Date.now();
}
