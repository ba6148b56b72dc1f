// A job that is followed: it is read once, and again by its stream each time it
// changes, until it has ended.
import { follow, get, Refusal } from "../../lib/api";
import { app } from "../../lib/app.svelte";
import type { Job } from "../../lib/types";
import { ended } from "./words";

export class Followed {
  job = $state.raw<Job | null>(null);
  error = $state.raw<unknown>(null);
  #id: string;
  constructor(id: string) {
    this.#id = id;
  }

  path(): string {
    return "/jobs/" + encodeURIComponent(this.#id);
  }

  // load reads the job as it is now.
  async load() {
    try {
      this.job = await get<Job>(this.path());
      this.error = null;
    } catch (e) {
      this.error = e;
    }
  }

  // begin follows the job until the returned function is called. A job that ended
  // has no more events, and one that is run again is heard of by the feed.
  begin(): () => void {
    let stop: (() => void) | undefined;
    const listen = () => {
      stop?.();
      stop = follow<Job>({
        path: this.path() + "/events",
        each: (j) => {
          this.job = j;
          this.error = null;
          if (ended(j)) { stop?.(); stop = undefined; }
        },
        state: () => {},
      });
    };
    const begin = async () => {
      await this.load();
      if (over || (this.error instanceof Refusal && this.error.problem.status === 404) || (this.job && ended(this.job))) return;
      listen();
    };
    let over = false;
    void begin();
    const end = app.onJob((id) => { if (id === this.#id && !stop) void begin(); });
    return () => { over = true; end(); stop?.(); };
  }
}
