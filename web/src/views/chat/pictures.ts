// Pictures that go along with what is said.

export interface Picture { name: string; mime: string; data: string /* base64 */; size: number }

export const kinds = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const largest = 8 << 20;
const together = 11 << 20; // with what is said they must fit into one message
const most = 20;
const mib = (n: number) => (n / (1 << 20)).toFixed(1);

// read gives the pictures among files, and says why the others are none.
export async function read(files: File[], have: Picture[]): Promise<{ pictures: Picture[]; problems: string[] }> {
  const pictures: Picture[] = [];
  const problems: string[] = [];
  let size = have.reduce((n, p) => n + p.size, 0);
  for (const f of files) {
    const name = f.name || "picture";
    if (!kinds.includes(f.type)) problems.push(`${name} is not a supported picture (PNG, JPEG, GIF, WebP).`);
    else if (f.size > largest) problems.push(`${name} is ${mib(f.size)} MiB; the limit is 8 MiB for each picture.`);
    else if (have.length + pictures.length >= most) problems.push(`${name} was not attached: the limit is ${most} pictures.`);
    else if (size + f.size > together) problems.push(`${name} was not attached: the limit for all pictures together is ${mib(together)} MiB.`);
    else {
      size += f.size;
      pictures.push({ name, mime: f.type, size: f.size, data: await base64(f) });
    }
  }
  return { pictures, problems };
}

function base64(f: File): Promise<string> {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(f);
  });
}
