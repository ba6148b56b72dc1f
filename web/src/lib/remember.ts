// What this browser remembers between visits. It may forbid that; then nothing is.

export function recall(name: string): string | null {
  try {
    return localStorage.getItem("ken-" + name);
  } catch {
    return null;
  }
}

export function remember(name: string, value: string) {
  try {
    localStorage.setItem("ken-" + name, value);
  } catch { /* it is forgotten */ }
}
