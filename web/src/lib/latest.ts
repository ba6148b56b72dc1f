// latest tells the answer that is wanted from those that were asked for before
// it: each call begins a new request, and what it gives says whether no other
// began since. What came too late is dropped by whoever asks.
export function latest(): () => () => boolean {
  let newest = 0;
  return () => {
    const mine = ++newest;
    return () => mine === newest;
  };
}
