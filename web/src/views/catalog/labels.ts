// Which names are written in the picture, and where: the first come first, and
// none stands on another, hides a dot or leaves the picture.
import { named } from "../../lib/odd";

// A Want is a text of a size, and the middles of the places where it may stand,
// the best first.
export interface Want { text: string; width: number; height: number; places: [x: number, y: number][]; over?: boolean /* it may hide dots */ }
export interface Dot { x: number; y: number; r: number }
export interface Written<W extends Want> { want: W; x: number; y: number }

const apart = 3; // px between two of them
const edge = 6; // px to the sides of the picture

export function write<W extends Want>(wants: W[], width: number, height: number, dots: Dot[] = []): Written<W>[] {
  const out: Written<W>[] = [];
  const free = (w: W, x: number, y: number) => out.every((o) =>
    Math.abs(o.x - x) >= (o.want.width + w.width) / 2 + apart || Math.abs(o.y - y) >= (o.want.height + w.height) / 2 + apart);
  const clear = (w: W, x: number, y: number) => w.over || dots.every((d) => Math.abs(d.x - x) >= w.width / 2 + d.r || Math.abs(d.y - y) >= w.height / 2 + d.r);
  for (const w of wants) {
    for (const [px, y] of w.places) {
      const most = width - edge - w.width / 2;
      if (px < 0 || px > width || most < edge + w.width / 2) continue;
      const x = Math.max(edge + w.width / 2, Math.min(most, px)); // at the edge it moves inward
      if (y < w.height / 2 || y > height - w.height / 2 || !free(w, x, y) || !clear(w, x, y)) continue;
      out.push({ want: w, x, y });
      break;
    }
  }
  return out;
}

// short names what does not show in a name, as nobody else does for a canvas, and leaves out the middle of a name that is too long: its end tells it apart.
export function short(text: string, most: number): string {
  const name = named(text);
  if (name.length <= most) return name;
  const head = Math.ceil((most - 1) * 0.6);
  return name.slice(0, head) + "…" + name.slice(name.length - (most - 1 - head));
}
